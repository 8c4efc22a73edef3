import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { digestOfFile } from "../journal/digest.ts";
import type { ProgramAgent } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";
import { GRACE_MS, lastLine, reportOf, Tail, variablesOf } from "./program.ts";

export interface CommandOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly folder?: string;
  /** Variables beside those of the episode. */
  readonly variables?: Readonly<Record<string, string>>;
}

/**
 * Any program, in any language. Its environment tells it where the tools and the model are and what the task is; its standard output
 * are its last words. An exit code other than 0 is a failure of the agent.
 */
export function commandAgent({ command, folder, variables = {} }: CommandOptions): ProgramAgent {
  return {
    name: "command",
    settings: { command, ...filesOf(command, folder) },
    run: async (start) => {
      const [program, ...args] = command;
      if (program === undefined) throw new AgentError("the agent's command is empty; write it after --, such as: -- python agent.py");
      const from = performance.now();
      const child = spawn(program, args, {
        ...(folder !== undefined && { cwd: folder }),
        env: { ...withoutPlatform(process.env), ...variables, ...variablesOf(start) },
        stdio: ["ignore", "pipe", "pipe"],
        // A group of its own, so that the children it starts end with it.
        detached: true,
      });
      const output = tailOf(child.stdout);
      const errors = tailOf(child.stderr);
      let grace: NodeJS.Timeout | undefined;
      const stop = () => {
        signalGroup(child.pid, "SIGTERM");
        grace = setTimeout(() => signalGroup(child.pid, "SIGKILL"), GRACE_MS);
      };
      if (start.signal.aborted) stop();
      else start.signal.addEventListener("abort", stop, { once: true });
      try {
        const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
        const ending = { exitCode: code, signal, stdout: output.text, stderr: errors.text, durationMs: performance.now() - from };
        start.report(reportOf(ending));
        start.signal.throwIfAborted();
        if (code === 0) return { text: output.text.trim() === "" ? null : output.text };
        throw new AgentError(`${program} ended with ${code === null ? `signal ${signal}` : `exit code ${code}`}: ${lastLine(errors.text)}`);
      } catch (cause) {
        start.signal.throwIfAborted();
        throw cause instanceof AgentError
          ? cause
          : new AgentError(`${program} could not be started: ${(cause as Error).message}`, { cause });
      } finally {
        start.signal.removeEventListener("abort", stop);
        clearTimeout(grace);
        // The program has ended; children that it left behind would use the instance of another episode.
        signalGroup(child.pid, "SIGKILL");
      }
    },
  };
}

/** Without the platform's address and key: with those, an agent could reach the rewards and the tasks. */
function withoutPlatform(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const entries = Object.entries(variables).filter(([name]) => !/^AENV_/.test(name) && !PLATFORM_VARIABLES.has(name));
  return Object.fromEntries(entries);
}

/** Variables of the original's clients that name a platform or an instance. */
const PLATFORM_VARIABLES: ReadonlySet<string> = new Set(["HUB_BACKEND", "DUMMY_INSTANCE_IP"]);

/** Signals the program and its children. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

function tailOf(stream: NodeJS.ReadableStream): Tail {
  const tail = new Tail();
  stream.setEncoding("utf8");
  stream.on("data", (piece: string) => tail.push(piece));
  return tail;
}

/** The digests of the files that a command names: an edited program is another agent. */
function filesOf(command: readonly string[], folder = "."): { readonly files?: Readonly<Record<string, string>> } {
  const named = command.filter((word) => statSync(resolve(folder, word), { throwIfNoEntry: false })?.isFile() === true);
  return named.length === 0 ? {} : { files: Object.fromEntries(named.map((word) => [word, digestOfFile(resolve(folder, word))])) };
}
