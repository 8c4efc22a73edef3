import { type ChildProcess, spawn } from "node:child_process";
import type { KeyObject } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SandboxAddress } from "../engine.ts";
import { initKeyArgument } from "../init/key.ts";
import { initProgram } from "../init/program.ts";
import type { SandboxFolder, SandboxRecord } from "./sandbox-folder.ts";

/** The init of a process sandbox listens beside its program. */
export function initAddressOf({ socket }: Pick<SandboxRecord, "socket">): SandboxAddress {
  return { kind: "unix", path: join(dirname(socket), "i") };
}

/** Starts the init as an ordinary process. Like the program, it outlives this process, and ends with the sandbox. */
export async function launchInit(
  folder: SandboxFolder,
  record: SandboxRecord,
  key: KeyObject,
  variables: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const program = await initProgram(process.arch === "arm64" ? "arm64" : "x64");
  const { path } = initAddressOf(record) as { path: string };
  const log = openSync(folder.log, "a", 0o600);
  try {
    const args = ["--listen", `unix:${path}`, "--key", initKeyArgument(key)];
    const child = spawn(program, args, { cwd: folder.work, env: { ...variables }, detached: true, stdio: ["ignore", log, log] });
    child.unref();
    await once(child, "spawn");
    return child;
  } finally {
    closeSync(log);
  }
}
