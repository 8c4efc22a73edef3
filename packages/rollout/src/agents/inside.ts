import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { messageOf } from "@aenv/contract";
import { digestOfFile } from "../journal/digest.ts";
import type { ProgramAgent, ProgramPlace, ProgramStart } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";
import type { EpisodeSandbox } from "../player/instance.ts";
import { commandAgent } from "./command.ts";
import { archiveOf, digestOfFolder } from "./folder.ts";
import { GRACE_MS, lastLine, type ProgramEnding, reportOf, Tail, variablesOf } from "./program.ts";

export interface InsideOptions {
  /** The program and its arguments, inside the sandbox. */
  readonly command: readonly string[];
  /** A shell script of this machine that is run as root before each episode. */
  readonly install?: string;
  /** A folder of this machine that is copied to `/opt/agent` before that. */
  readonly files?: string;
  /** Who runs the program; root by default. */
  readonly user?: string;
}

/** Where the files of an agent are in the sandbox. */
const FILES = "/opt/agent";
const SCRIPT = "/opt/agent-install.sh";
const INSTALL_MS = 15 * 60_000;
/** The variable by which the processes of a program are found again. */
const MARK = "AENV_AGENT_MARK";

/** Ends what has the mark in its environment, with what it starts meanwhile. */
const SWEEP = `
  for round in 1 2 3 4 5; do
    found=
    for folder in /proc/[0-9]*; do
      if grep -q -F -- "$1" "$folder/environ" 2>/dev/null; then kill -9 "\${folder#/proc/}" 2>/dev/null && found=1; fi
    done
    [ -n "$found" ] || exit 0
  done`;

/**
 * A program that runs in the sandbox of the task. It reaches the model and the tools through a port of the sandbox, on which this process
 * listens: in a sandbox without a network it reaches nothing else. Where sandboxes are processes of this machine, it is one too.
 */
export function insideAgent(options: InsideOptions): ProgramAgent {
  const { command, install, files, user } = options;
  const outside = commandAgent({ command });
  return {
    name: "command",
    settings: {
      command,
      inside: { ...(install !== undefined && { install }), ...(files !== undefined && { files }), ...(user !== undefined && { user }) },
      // An edited program is another agent.
      ...(install !== undefined && { installDigest: digestOfFile(install) }),
      ...(files !== undefined && { filesDigest: digestOfFolder(files) }),
    },
    prepare: async (place) => {
      if (!isMachine(place)) return installIn(sandboxOf(place), options, place.signal);
      if (install === undefined && files === undefined) return;
      throw new AgentError(
        `nothing can be installed where sandboxes are processes of this machine; use a server with the engine oci or docker`,
      );
    },
    run: (start) => (isMachine(start) ? outside.run(start) : runInside(sandboxOf(start), options, start)),
  };
}

function isMachine({ isIsolated }: Pick<ProgramPlace, "isIsolated">): boolean {
  return isIsolated === false;
}

function sandboxOf({ sandbox }: Pick<ProgramPlace, "sandbox">): EpisodeSandbox {
  if (sandbox === null) throw new AgentError("the instance has no sandbox in which a program could run; use a server of the platform");
  return sandbox;
}

async function installIn(sandbox: EpisodeSandbox, { install, files }: InsideOptions, signal: AbortSignal): Promise<void> {
  if (files !== undefined) await sandbox.files.upload(FILES, archiveOf(files), { signal });
  if (install === undefined) return;
  await sandbox.files.write(SCRIPT, readFileSync(install), { mode: 0o755, signal });
  const cwd = files === undefined ? {} : { cwd: FILES };
  const { exitCode, stdout, stderr, timedOut } = await sandbox.exec(["sh", SCRIPT], {
    ...cwd,
    user: "root",
    timeoutMs: INSTALL_MS,
    signal,
  });
  if (exitCode === 0) return;
  const how = timedOut ? `took longer than ${INSTALL_MS / 60_000} minutes` : `ended with exit code ${exitCode}`;
  throw new AgentError(`the install script ${install} ${how}: ${lastLine(stderr.trim() === "" ? stdout : stderr)}`);
}

async function runInside(sandbox: EpisodeSandbox, options: InsideOptions, start: ProgramStart): Promise<{ text: string | null }> {
  const [program] = options.command;
  if (program === undefined) throw new AgentError("the agent's command is empty; write it after --, such as: -- python3 agent.py");
  const recorder = Number(new URL(start.agentUrl).port);
  await using listener = await sandbox.listen(0, (connection) => join(connection, recorder), { signal: start.signal });
  const mark = randomBytes(16).toString("hex");
  let ending: ProgramEnding;
  try {
    ending = await finish(sandbox, options, { ...variablesOf(seenFrom(listener.port, start)), [MARK]: mark }, start.signal);
  } catch (error) {
    start.signal.throwIfAborted();
    if ((error as { code?: unknown }).code !== "command.not_started") throw error;
    throw new AgentError(`${program} could not be started in the sandbox: ${messageOf(error)}`, { cause: error });
  } finally {
    await sweep(sandbox, options, mark);
  }
  start.report(reportOf(ending));
  start.signal.throwIfAborted();
  const { exitCode, signal, stdout, stderr } = ending;
  if (exitCode === 0) return { text: stdout.trim() === "" ? null : stdout };
  throw new AgentError(`${program} ended with ${exitCode === null ? `signal ${signal}` : `exit code ${exitCode}`}: ${lastLine(stderr)}`);
}

/** Runs the program to its end; when the signal aborts, it is asked to end, and then killed. */
async function finish(
  sandbox: EpisodeSandbox,
  { command, user }: InsideOptions,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ProgramEnding> {
  signal.throwIfAborted();
  const from = performance.now();
  await using process = await sandbox.spawn(command, { env, endsWithClient: true, ...(user !== undefined && { user }) });
  await process.stdin.close();
  let grace: NodeJS.Timeout | undefined;
  const stop = () => {
    process.signal("SIGTERM");
    grace = setTimeout(() => process.signal("SIGKILL"), GRACE_MS);
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const [{ exitCode, signal: how }, stdout, stderr] = await Promise.all([process.exited, tailOf(process.stdout), tailOf(process.stderr)]);
    return { exitCode, signal: how, stdout, stderr, durationMs: performance.now() - from };
  } finally {
    clearTimeout(grace);
    signal.removeEventListener("abort", stop);
  }
}

/** Ends children that the program left behind, before the episode is scored. Never fails: what is wrong with the sandbox, the score shows. */
async function sweep(sandbox: EpisodeSandbox, { user }: InsideOptions, mark: string): Promise<void> {
  const options = { timeoutMs: 30_000, ...(user !== undefined && { user }) };
  await sandbox.exec(["sh", "-c", SWEEP, "sh", `${MARK}=${mark}`], options).catch(() => {});
}

/** The addresses as they are inside of the sandbox. */
function seenFrom(port: number, start: ProgramStart): ProgramStart {
  const inside = (url: string) => {
    const seen = new URL(url);
    seen.port = String(port);
    return seen.href;
  };
  const { model } = start;
  return {
    ...start,
    agentUrl: inside(start.agentUrl),
    model: model === null ? null : { ...model, openaiUrl: inside(model.openaiUrl), anthropicUrl: inside(model.anthropicUrl) },
  };
}

/** Connects a program of the sandbox with the recording server. Only this process chooses where that is. */
function join(connection: Duplex, port: number): void {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {}).once("close", () => connection.destroy());
  connection.on("error", () => {}).once("close", () => socket.destroy());
  connection.pipe(socket).pipe(connection);
}

async function tailOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const tail = new Tail();
  for await (const piece of stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)) tail.push(piece);
  return tail.text;
}
