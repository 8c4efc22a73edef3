import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { instancePrefix } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { CommandProcess } from "../dev/command-process.ts";
import { Relay } from "../dev/relay.ts";
import { SandboxProcess } from "../dev/sandbox-process.ts";
import { locateErrors } from "../project/locate-errors.ts";
import type { Project } from "../project/project.ts";
import { openSource, type SourceOptions } from "../rollout/source.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** The instance that is checked. */
export interface CheckedTarget extends AsyncDisposable {
  readonly url: string;
  /** The path that says whether it is ready. */
  readonly health: string;
}

export interface TargetOptions extends SourceOptions {
  readonly onOutput: (line: string) => void;
}

/**
 * Starts an instance of a project: as `aenv run` does, so that nothing is between the checks and the program; or on a server inside of this
 * command, where an engine is named or the code opens sandboxes.
 */
export async function openTarget(
  project: Project,
  options: TargetOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<CheckedTarget> {
  const { runtime, deployConfig } = project.config;
  if (options.engine !== undefined || deployConfig?.taskSandboxes !== undefined) return onServer(project, options, terminal);
  return runtime === undefined ? serveModule(project, options, signal) : serveCommand(project, options, signal);
}

async function serveCommand(
  project: Project,
  { loadTimeout: loadTimeoutMs, onOutput }: TargetOptions,
  signal: AbortSignal,
): Promise<CheckedTarget> {
  const started = await CommandProcess.start(
    { project, loadTimeoutMs, onLine: (_, line) => onOutput(line), onCrash: onCrash(onOutput) },
    signal,
  );
  const { host, port } = started.target;
  return {
    url: `http://${host}:${port}`,
    health: project.config.runtime?.healthPath ?? "/health",
    [Symbol.asyncDispose]: () => started.stop(),
  };
}

/** Its process listens on a socket, which a relay makes a port. */
async function serveModule(
  project: Project,
  { loadTimeout: loadTimeoutMs, onOutput }: TargetOptions,
  signal: AbortSignal,
): Promise<CheckedTarget> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-"));
  const socketPath = process.platform === "win32" ? `\\\\.\\pipe\\aenv-test-${process.pid}` : join(folder, "test.sock");
  const relay = new Relay();
  const close = async () => {
    await relay.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const port = await relay.listen("127.0.0.1", 0);
  try {
    const onUnhealthy = (reason: string) => onOutput(`it is not healthy yet: ${reason}`);
    const options = { root: project.root, host: "127.0.0.1", socketPath, loadTimeoutMs, onUnhealthy };
    const started = await SandboxProcess.start({ ...options, onLine: (_, line) => onOutput(line), onCrash: onCrash(onOutput) }, signal);
    relay.use(socketPath);
    return {
      url: `http://127.0.0.1:${port}`,
      health: "/health",
      [Symbol.asyncDispose]: async () => {
        await started.stop();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error instanceof Failure ? await locateErrors(project, error) : error;
  }
}

async function onServer(project: Project, options: TargetOptions, terminal: Terminal): Promise<CheckedTarget> {
  const source = await openSource(`${project.root}/`, options, terminal);
  try {
    const env = await Environment.create(source.environment, source.options);
    const { dataUrl } = source.options;
    const { instanceId } = await env.getEnvInfo();
    return {
      url: `${dataUrl}${instancePrefix(instanceId)}`,
      health: "/health",
      [Symbol.asyncDispose]: async () => {
        await env.release();
        await source[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}

function onCrash(onOutput: (line: string) => void): (how: string) => void {
  return (how) => onOutput(`the environment's process ended: ${how}`);
}
