import { writeFileSync } from "node:fs";
import { posix } from "node:path";
import { messageOf, PlatformError } from "@aenv/contract";
import type { Listening, SandboxAddress, SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import { isInitError } from "../init/error.ts";
import type { RemoteProcess } from "../init/process.ts";
import { waitUntilReady } from "../lifecycle/readiness.ts";
import { startFailed } from "../lifecycle/start-errors.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import { createWorkingDirectory } from "../lifecycle/working-directory.ts";
import { APPENDED, outsideOnly, tellAddress } from "../spec/listening.ts";
import { mainProgram } from "../spec/program.ts";
import { type Container, initAddress } from "./container.ts";
import type { OciSandbox, SandboxRecord } from "./sandbox.ts";
import { describeCut } from "./snapshots/connections.ts";
import type { MemoryFacts } from "./snapshots/store.ts";
import { ANY_HOST, describeTimeout } from "./start-timeout.ts";

/** Where programs listen that the engine tells it. */
const PROGRAM_PORT = 8081;

export interface ProgramRun {
  readonly sandbox: OciSandbox;
  readonly spec: SandboxSpec;
  /** That of the snapshot from which the sandbox starts, with the program that runs in it. */
  readonly memory: MemoryFacts | null;
  readonly logPath: string;
  /** Stores the record of the sandbox. */
  readonly write: (record: SandboxRecord) => void;
  readonly signal: AbortSignal;
}

/** Starts the program, or goes on with that of a snapshot, and waits until it answers. */
export async function runProgram(run: ProgramRun): Promise<void> {
  const { sandbox, spec, memory, logPath, signal } = run;
  const listening = spec.listening ?? APPENDED;
  const program = memory === null ? await start(run, listening) : await goOn(sandbox, memory, logPath);
  if (program === null) return;
  run.write(sandbox.setRecord({ program: program.id }));
  sandbox.follows(program);
  if (listening.kind !== "none") await untilReady(sandbox, spec, listening, signal);
}

/** The program of a restored sandbox runs already. */
async function goOn(sandbox: OciSandbox, { cut, program }: MemoryFacts, logPath: string): Promise<RemoteProcess | null> {
  const lost = describeCut(cut);
  if (lost !== null) writeFileSync(logPath, `${lost}\n`, { flag: "a", mode: 0o600 });
  return program === null ? null : sandbox.container.init.attach(program);
}

/** Null for a sandbox that only runs commands: it does not start the program of its image, which often is a shell that would end at once. */
async function start({ sandbox, spec, signal }: ProgramRun, listening: Listening): Promise<RemoteProcess | null> {
  const { init, record } = sandbox.container;
  await createWorkingDirectory(spec.id, init, record.files.config?.workingDirectory ?? "/");
  await addHosts(sandbox, spec);
  if (listening.kind === "none" && spec.command.length === 0) return null;
  const program = mainProgram(withAddress(spec, listening, sandbox.container.record.runtime), sandbox.container.record.files.config);
  if (program === null) throw startFailed(spec.id, "neither the image nor the specification names a program");
  // A snapshot has the folder already, with the changes of its program, also if it was taken on another machine.
  const folder = spec.folder === undefined ? null : await sandbox.addProgramFolder(spec.folder, signal);
  const workingDirectory = folder === null ? program.workingDirectory : posix.join(folder, spec.cwd ?? ".");
  return startProgram(sandbox, spec, { ...program, workingDirectory });
}

async function startProgram(
  sandbox: OciSandbox,
  spec: SandboxSpec,
  program: NonNullable<ReturnType<typeof mainProgram>>,
): Promise<RemoteProcess> {
  try {
    return await sandbox.container.init.startMain({
      argv: program.command,
      env: program.variables,
      cwd: program.workingDirectory,
      user: program.user,
      oneOutput: true,
      // The sandbox is ended here, after the reason is known.
      keep: true,
    });
  } catch (error) {
    if (isInitError(error, "no_program")) throw startFailed(spec.id, `program not found: ${error.message}`);
    throw startFailed(spec.id, messageOf(error));
  }
}

/** The engine writes the file anew for every sandbox, also for one that starts from a snapshot. */
async function addHosts({ container }: OciSandbox, { hosts = [] }: SandboxSpec): Promise<void> {
  if (hosts.length === 0) return;
  const text = hosts.map(({ name, address }) => `${address} ${name}\n`).join("");
  await container.init.files.write({ path: "/etc/hosts", content: Buffer.from(text), append: true });
}

/** Until the program answers. Rejects with the reason and the end of its log if it does not. */
async function untilReady(
  sandbox: OciSandbox,
  spec: SandboxSpec,
  listening: Exclude<Listening, { kind: "none" }>,
  signal: AbortSignal,
): Promise<void> {
  let status: number | null = null;
  const failed = (reason: string) => startFailed(spec.id, reason, sandbox.log.tail(20));
  const limits = {
    id: spec.id,
    signal,
    timeoutMs: spec.startTimeoutMs,
    timedOut: async () => failed(await describeTimeout(sandbox, listening, spec.startTimeoutMs, status)),
  };
  await startWithin(limits, (stop, fail) => {
    sandbox.exited.then(({ reason }) => fail(() => failed(reason)));
    return waitUntilReady(
      () => sandbox.address,
      listening,
      stop,
      (answered) => {
        status = answered;
      },
    );
  });
}

export function addressOf(listening: Listening, { network }: Container): SandboxAddress {
  const host = network.address;
  switch (listening.kind) {
    case "appended":
      return { kind: "tcp", host, port: PROGRAM_PORT };
    case "port":
      return { kind: "tcp", host, port: listening.port };
    case "none":
      // Nothing answers HTTP there.
      return initAddress(network);
  }
}

/** The command and the variables that tell the program where to listen. */
function withAddress(spec: SandboxSpec, listening: Listening, runtime: SandboxRuntime): Pick<SandboxSpec, "command" | "variables"> {
  const { command, variables, isRunner } = spec;
  switch (listening.kind) {
    case "appended":
      return {
        // Only runsc copies the memory of processes.
        command: [
          ...command,
          ...["--host", ANY_HOST, "--port", String(PROGRAM_PORT)],
          ...(isRunner === true && runtime === "runsc" ? ["--kernel-random"] : []),
        ],
        variables,
      };
    case "port":
      return tellAddress({ command, variables: { ...outsideOnly, ...variables } }, { host: ANY_HOST, port: listening.port });
    case "none":
      return { command, variables };
  }
}

/** An address is not appended to the command of an image. */
export function assertProgram({ id, command, image, listening = APPENDED }: SandboxSpec): void {
  if (command.length === 0 && image !== undefined && listening.kind === "appended")
    throw new PlatformError("request.invalid", `sandbox '${id}' has no command to run`);
}
