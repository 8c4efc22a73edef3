import { spawn } from "node:child_process";
import { once } from "node:events";

/** `docker run` of the image, until its program has printed its line. */
export async function dockerRun(socket: string, image: string, program: string): Promise<number> {
  const start = performance.now();
  const child = spawn("docker", ["-H", `unix://${socket}`, "run", "--rm", "--network", "none", image, program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [printed] = (await Promise.race([once(child.stdout, "data"), exited.then(() => [])])) as unknown[];
  const took = performance.now() - start;
  const [code] = await exited;
  if (code !== 0 || !String(printed).includes("ready")) throw new Error(`docker run ended with ${code} and printed ${String(printed)}`);
  return took;
}
