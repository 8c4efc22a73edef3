import type { KeyObject } from "node:crypto";
import { dirname, join } from "node:path";
import type { SandboxAddress } from "../engine/engine.ts";
import { initKeyArgument } from "../init/key.ts";
import { initProgram } from "../init/program.ts";
import { type Launched, launch } from "./launcher.ts";
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
  group?: string,
): Promise<Launched> {
  const file = await initProgram(process.arch === "arm64" ? "arm64" : "x64");
  const { path } = initAddressOf(record) as { path: string };
  const args = ["--listen", `unix:${path}`, "--key", initKeyArgument(key)];
  return launch({ file, args, variables, cwd: folder.work, log: folder.log, group });
}
