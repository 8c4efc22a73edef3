import type { KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { CALLERS_LABEL, OWN_CONNECTIONS_KEY, OWN_CONNECTIONS_VARIABLE } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";
import type { InitConnection } from "../init/connection.ts";
import { isInitError } from "../init/error.ts";
import { APPENDED, healthPathOf, tellAddress } from "../spec/listening.ts";
import { containerProgram, type MainProgram, mainProgram } from "../spec/program.ts";
import { callerDigest } from "./caller-key.ts";
import type { DockerImage } from "./images.ts";
import type { DockerSandbox } from "./sandbox.ts";

/** Where programs listen that the engine tells it: on the loopback interface of their own network namespace. */
const HOST = "127.0.0.1";
export const PROGRAM_PORT = 8081;

/** Whether the program takes only connections that begin with the caller's key: the kit's runner, and the server of an image that says so. */
export function checksCallers(spec: SandboxSpec, image: DockerImage): boolean {
  return spec.isRunner === true || isImageOfKit(spec, image);
}

/** An image of the kit has its label. An image that has the label and does not check the key reads it as a bad request, which breaks only itself. */
function isImageOfKit({ command, program, listening }: SandboxSpec, { config }: DockerImage): boolean {
  const isOwnProgram = command.length === 0 && program === undefined && listening?.kind === "port";
  const server = config.labels[CALLERS_LABEL];
  return isOwnProgram && server !== undefined && config.command.includes(server);
}

/** The program with where to listen. A sandbox that is only used for commands runs no program of its image, which might end at once. */
export function programOf(spec: SandboxSpec, image: DockerImage, initKey: KeyObject): MainProgram | null {
  const listening = spec.listening ?? APPENDED;
  if (spec.program !== undefined) {
    const program = containerProgram(spec.program, spec.variables, image.config);
    if (program === null) throw new Error("neither the sandbox nor its image names a program to run");
    return program;
  }
  if (listening.kind === "none" && spec.command.length === 0) return null;
  const told = listening.kind === "port" ? tellAddress(spec, { host: HOST, port: listening.port }) : spec;
  const program = mainProgram(told, image.config);
  if (program === null) throw new Error("neither the sandbox nor its image names a program to run");
  const digest = callerDigest(initKey, spec.id);
  if (isImageOfKit(spec, image))
    return { ...program, variables: { ...program.variables, [OWN_CONNECTIONS_VARIABLE]: `${OWN_CONNECTIONS_KEY}${digest}` } };
  const where = listening.kind === "appended" ? ["--host", HOST, "--port", String(PROGRAM_PORT)] : [];
  const callers = spec.isRunner === true ? ["--caller-digest", digest] : [];
  return { ...program, command: [...program.command, ...where, ...callers] };
}

/** As many as can run, and no more than this process may have. If none is named, Podman asks for a million, which fails where it may not raise limits. */
export function maxUserProcesses(): number {
  const [, hard = ""] = /^Max processes\s+\S+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  const numbers = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  return Math.min(numbers, Number(hard) || numbers);
}

export function describeTimeout(
  sandbox: DockerSandbox,
  { startTimeoutMs, listening = APPENDED }: SandboxSpec,
  status: number | null,
): string {
  const request = `GET ${healthPathOf(listening)}`;
  const state = sandbox.isListening ? `the program listens, but did not answer ${request}` : "the program did not listen on its port";
  return `${status === null ? state : `the program answered ${status} to ${request}`} within ${startTimeoutMs} ms`;
}

/** `folder` is the path of the program's files in the sandbox. No program: the sandbox only runs commands. */
export async function startProgram(
  init: InitConnection,
  { cwd = "." }: SandboxSpec,
  program: ReturnType<typeof programOf>,
  folder: string | null,
): Promise<void> {
  if (program === null) return;
  try {
    await init.startMain({
      argv: program.command,
      env: program.variables,
      cwd: folder === null ? program.workingDirectory : posix.join(folder, cwd),
      ...(program.user !== "" && { user: program.user }),
      inheritOutput: true,
    });
  } catch (error) {
    if (!isInitError(error)) throw error;
    const why = error.code === "no_program" ? "no such program in the image" : error.message;
    throw new Error(`cannot run '${program.command[0]}': ${why}`);
  }
}
