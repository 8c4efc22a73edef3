import { execFile } from "node:child_process";
import { accessSync, constants, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { messageOf, PlatformError } from "@aenv/contract";
import type { SandboxRuntime } from "../../engine/engine.ts";
import { SYSTEM_PATH } from "../../host/launcher.ts";
import { findHierarchy } from "../cgroups/group.ts";
import { CommandRuntime } from "./command-runtime.ts";
import { canUseCrun, type TrialPlace } from "./crun.ts";
import { crun, runc, runsc } from "./dialect.ts";
import { RunscRuntime } from "./runsc.ts";
import type { OciRuntime } from "./runtime.ts";

export interface RuntimeOptions extends TrialPlace {
  /** Where the runtime keeps what it knows about its sandboxes. */
  readonly root: string;
  /** The program: a path or a name. The default for runc is crun if it works here, for sandboxes with their own users, else runc. */
  readonly program?: string;
}

/** Throws `sandbox.unsupported` with the next step if the runtime does not work on this machine. */
export async function openRuntime(name: SandboxRuntime, given: RuntimeOptions): Promise<OciRuntime> {
  const { root, program, sharedFolder } = given;
  const faster = name === "runc" && program === undefined && canRun() === null ? findProgram("crun") : null;
  // With users of the sandbox's own, crun has the same walls and starts faster.
  const chosen = faster !== null && (await canUseCrun(faster, given)) ? faster : program;
  const problem = await probeRuntime(name, chosen);
  if (problem !== null) throw new PlatformError("sandbox.unsupported", `sandboxes with ${name} cannot run here: ${problem}`);
  const path = findProgram(chosen ?? name, name) as string;
  const options = { program: path, root, sharedFolder, hierarchy: await findHierarchy() };
  if (name === "runc") {
    if (program !== undefined || path !== faster) return new CommandRuntime({ ...options, dialect: isCrun(path) ? crun : runc });
    const other = findProgram("runc");
    const forMachineUsers = other === null ? null : { dialect: runc, program: other };
    return new CommandRuntime({ ...options, dialect: crun, forMachineUsers });
  }
  return new RunscRuntime({ ...options, dialect: runsc, version: await versionOf(path) });
}

/** Why the runtime does not work on this machine and what to do; null if it does. */
export async function probeRuntime(name: SandboxRuntime, program?: string): Promise<string | null> {
  const problem = canRun();
  if (problem !== null) return problem;
  const path = findProgram(program ?? name, name);
  if (path === null) return `there is no program '${program ?? name}'; ${NEXT_STEP[name]}`;
  return versionOf(path).then(
    () => null,
    (error: unknown) => `'${path} --version' failed: ${messageOf(error)}`,
  );
}

function canRun(): string | null {
  if (process.platform !== "linux") return "they need Linux; use the engine 'docker' here";
  return process.getuid?.() === 0 ? null : "they need root: start the server as root, or use the engine 'docker'";
}

function isCrun(path: string): boolean {
  return basename(path).startsWith("crun");
}

/** The first line of what it prints, such as `runsc version release-20260907.0`. */
async function versionOf(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: 20_000, env: { PATH: SYSTEM_PATH }, encoding: "utf8" });
  return stdout.split("\n")[0]?.trim() ?? "";
}

const NEXT_STEP = {
  runc: "install it or crun, on Debian with: apt-get install crun",
  runsc: "install gVisor (https://gvisor.dev/docs/user_guide/install), and set AENV_RUNSC to the program if it is not on the PATH",
} as const satisfies Record<SandboxRuntime, string>;

/** A path, a program on the PATH, or a runsc that was built into the user's cache folder; null if there is none. */
function findProgram(program: string, name?: SandboxRuntime): string | null {
  if (program.includes("/")) return isExecutable(program) ? program : null;
  const places = SYSTEM_PATH.split(":").map((folder) => join(folder, program));
  return [...places, ...(name === "runsc" ? builtRunsc() : [])].find(isExecutable) ?? null;
}

/** The newest first. */
function builtRunsc(): string[] {
  const cache = join(homedir(), ".cache/aenv-runsc");
  try {
    return readdirSync(cache)
      .toSorted()
      .toReversed()
      .map((version) => join(cache, version, "runsc"));
  } catch {
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
