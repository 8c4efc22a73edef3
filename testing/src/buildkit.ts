import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { buildkitdPath } from "./components.ts";
import { temporaryTree } from "./tree.ts";

/** A real daemon of BuildKit for one test, with its files in a temporary folder; ended with the scope. */
export interface BuildkitDaemon extends AsyncDisposable {
  /** Where a builder of buildx with the driver `remote` finds it: `unix://PATH`. */
  readonly address: string;
}

/** Needs the components `buildkitd` and `runc`. */
export async function startBuildkit(): Promise<BuildkitDaemon> {
  const tree = temporaryTree();
  const address = `unix://${join(tree.path, "socket")}`;
  // native mounts nothing. Containers of steps that run programs are in the network of this machine.
  const worker = ["--containerd-worker=false", "--oci-worker-snapshotter=native", "--oci-worker-net=host"];
  const child = spawn(buildkitdPath, ["--root", join(tree.path, "data"), "--addr", address, ...worker], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const end = async () => {
    const ended = child.exitCode === null ? once(child, "exit") : null;
    child.kill("SIGTERM");
    await ended;
    tree[Symbol.dispose]();
  };
  try {
    await untilListening(child.stderr);
    return { address, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function untilListening(stderr: NodeJS.ReadableStream): Promise<void> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: stderr })) {
    lines.push(line);
    if (!line.includes("running server on")) continue;
    // Read on: a full pipe would stop the daemon.
    stderr.resume();
    return;
  }
  throw new Error(`buildkitd did not start:\n${lines.join("\n")}`);
}
