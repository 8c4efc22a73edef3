import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { type DockerDaemon, startDocker } from "@aenv/testing";

/** A daemon whose containers have the network that they have by default. It is in a network namespace, so that it does not change the machine's. */
export async function startDockerWithNetwork(): Promise<DockerDaemon> {
  const namespace = `aenv-bench-${process.pid}`;
  const ip = (...args: string[]) => promisify(execFile)("ip", args);
  await ip("netns", "add", namespace);
  const remove = () => ip("netns", "del", namespace);
  try {
    const docker = await startDocker({ namespace, hasBridge: true });
    return {
      ...docker,
      [Symbol.asyncDispose]: async () => {
        await docker[Symbol.asyncDispose]();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** `docker run` of the image with these options, until its program has printed its line. */
export async function dockerRun(socket: string, image: string, program: string, options: readonly string[] = []): Promise<number> {
  const start = performance.now();
  const child = spawn("docker", ["-H", `unix://${socket}`, "run", "--rm", ...options, image, program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [printed] = (await Promise.race([once(child.stdout, "data"), exited.then(() => [])])) as unknown[];
  const took = performance.now() - start;
  const [code] = await exited;
  if (code !== 0 || !String(printed).includes("ready")) throw new Error(`docker run ended with ${code} and printed ${String(printed)}`);
  return took;
}
