import { assertUninterrupted, type TaskSandbox } from "@aenv/kit";
import { EvaluationError } from "./error.ts";
import type { EvalSandbox } from "./sandbox.ts";

/** Most bytes of a command's output: more is a mistake of the patch, or an attack. */
const MAX_OUTPUT_BYTES = 64 * 1_024 ** 2;
/** Time limit of each command that prepares the tests. */
const TIMEOUT_MS = 10 * 60_000;

/** A sandbox of the platform as one in which a patch is graded. Commands run as root, and their two outputs are one stream. */
export function evalSandbox(sandbox: TaskSandbox): EvalSandbox {
  return {
    exec: async (command, { cwd, timeoutMs } = {}) => {
      const given = { timeoutMs: timeoutMs ?? TIMEOUT_MS, ...(cwd !== undefined && { cwd }) };
      const { stdout, ending } = await run(sandbox, ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", ...command], given);
      return { exitCode: ending.timedOut ? null : (ending.exitCode ?? 137), output: stdout, isOutOfMemory: ending.outOfMemory };
    },
    write: (path, bytes) => sandbox.files.write(path, bytes, { user: "root" }),
  };
}

/** The git of a sandbox that the agent never touched. */
export interface CleanGit {
  run(args: readonly string[], options?: { readonly stdin?: Uint8Array; readonly cwd?: string }): Promise<GitResult>;
  write(path: string, bytes: Uint8Array): Promise<void>;
  remove(path: string): Promise<void>;
}

export interface GitResult {
  readonly exitCode: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/** The repository of the image may belong to another user. */
const GIT_SETTINGS = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" };

export function cleanGit(sandbox: TaskSandbox): CleanGit {
  return {
    run: async (args, options = {}) => {
      const { stdout, stderr, ending } = await run(sandbox, ["git", ...args], { ...options, timeoutMs: TIMEOUT_MS, env: GIT_SETTINGS });
      return { exitCode: ending.exitCode ?? 137, stdout, stderr: Buffer.from(stderr).toString("utf8") };
    },
    write: (path, bytes) => sandbox.files.write(path, bytes, { user: "root" }),
    remove: (path) => sandbox.files.remove(path, { recursive: true }).catch(() => {}),
  };
}

interface RunOptions {
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly stdin?: Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command as root; the bytes of its outputs are kept as they are. */
async function run(sandbox: TaskSandbox, command: readonly string[], { stdin, ...options }: RunOptions) {
  await using process = await sandbox.spawn([...command], { ...options, user: "root" });
  const [, stdout, stderr, ending] = await Promise.all([
    send(process.stdin, stdin),
    collect(process.stdout, command),
    collect(process.stderr, command),
    process.exited,
  ]);
  assertUninterrupted(ending);
  return { stdout, stderr, ending };
}

/** A command may end without reading all of it. */
async function send(to: WritableStream<Uint8Array>, bytes: Uint8Array | undefined): Promise<void> {
  const writer = to.getWriter();
  try {
    if (bytes !== undefined) await writer.write(bytes);
    await writer.close();
  } catch {
    // Its exit code says what happened.
  }
}

async function collect(from: ReadableStream<Uint8Array>, command: readonly string[]): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of from) {
    size += part.length;
    if (size > MAX_OUTPUT_BYTES) throw new EvaluationError(`'${command.slice(-2).join(" ")}' wrote more than ${MAX_OUTPUT_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
