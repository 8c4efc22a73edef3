import { messageOf, PlatformError } from "@aenv/contract";
import type { Listening, SandboxAddress, SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import { isInitError } from "../init/error.ts";
import type { RemoteProcess } from "../init/process.ts";
import { waitUntilReady } from "../lifecycle/readiness.ts";
import { startFailed } from "../lifecycle/start-errors.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import { outsideOnly, tellAddress } from "../spec/listening.ts";
import type { mainProgram } from "../spec/program.ts";
import { type Container, initAddress } from "./container.ts";
import type { OciSandbox } from "./sandbox.ts";
import { ANY_HOST, describeTimeout } from "./start-timeout.ts";

/** Where programs listen that the engine tells it. */
const PROGRAM_PORT = 8081;

export async function startProgram(
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

/**
 * Creates the working directory of an image that does not contain it, as Docker does: builders leave a directory out of the layers in
 * which nothing was written. One that cannot exist is an error of the start.
 */
export async function makeWorkingDirectory(sandbox: OciSandbox, spec: SandboxSpec): Promise<void> {
  const path = sandbox.container.record.files.config?.workingDirectory ?? "/";
  if (path === "/") return;
  try {
    await sandbox.container.init.files.mkdir({ path, parents: true });
  } catch (error) {
    throw startFailed(spec.id, `the working directory ${path} of its image cannot be created: ${messageOf(error)}`);
  }
}

/** The engine writes the file anew for every sandbox, also for one that starts from a snapshot. */
export async function addHosts({ container }: OciSandbox, { hosts = [] }: SandboxSpec): Promise<void> {
  if (hosts.length === 0) return;
  const text = hosts.map(({ name, address }) => `${address} ${name}\n`).join("");
  await container.init.files.write({ path: "/etc/hosts", content: Buffer.from(text), append: true });
}

/** Until the program answers. Rejects with the reason and the end of its log if it does not. */
export async function untilReady(
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

/** The default: the engine appends the address to the command. */
export const APPENDED: Listening = { kind: "appended" };

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
export function withAddress(spec: SandboxSpec, listening: Listening, runtime: SandboxRuntime): Pick<SandboxSpec, "command" | "variables"> {
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
