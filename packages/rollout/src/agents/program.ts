import { textOf } from "@aenv/contract";
import type { ProgramStart } from "../player/agent.ts";

/** How long a program may take to end after it was asked to. */
export const GRACE_MS = 2_000;

const KEPT_OUTPUT = 64 * 1024;
const REPORTED_OUTPUT = 8 * 1024;

/** How a program ended. */
export interface ProgramEnding {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
}

/** What a trajectory says of a program that has ended. */
export function reportOf({ exitCode, signal, stdout, stderr, durationMs }: ProgramEnding): Record<string, unknown> {
  return {
    exit_code: exitCode,
    signal,
    duration_ms: Math.round(durationMs),
    stdout_tail: stdout.slice(-REPORTED_OUTPUT),
    stderr_tail: stderr.slice(-REPORTED_OUTPUT),
  };
}

/** What a program finds in its environment. */
export function variablesOf({ task, messages, agentUrl, model, seed }: ProgramStart): Record<string, string> {
  return {
    AENV_AGENT_URL: agentUrl,
    AENV_TASK_ID: task.id ?? "",
    AENV_INSTRUCTION: task.instruction ?? messages.map(textOf).join("\n\n"),
    AENV_MESSAGES: JSON.stringify(messages),
    AENV_SEED: String(seed),
    ...(model !== null && {
      OPENAI_BASE_URL: model.openaiUrl,
      OPENAI_API_KEY: model.apiKey,
      ANTHROPIC_BASE_URL: model.anthropicUrl,
      ANTHROPIC_API_KEY: model.apiKey,
      AENV_MODEL: model.name,
    }),
  };
}

/** The end of a stream's text. */
export class Tail {
  #text = "";

  push(piece: string): void {
    this.#text = (this.#text + piece).slice(-KEPT_OUTPUT);
  }

  get text(): string {
    return this.#text;
  }
}

export function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) || "it printed nothing to standard error";
}
