import { PlatformError } from "@aenv/kit";
import type { Assertions, Judge } from "../core/evaluate/nl-assertions.ts";
import type { NlCheck } from "../core/evaluate/reward.ts";
import type { Message } from "../core/messages/messages.ts";
import { readJsonOr } from "../python/json/reader.ts";
import { bool, text } from "../python/model/field-types.ts";
import { model } from "../python/model/model.ts";
import { repr } from "../python/repr.ts";
import { Dict, type PyValue } from "../python/values/values.ts";
import { type ChatOptions, chat, type ModelSettings } from "./chat.ts";

const Verdict = model("NLAssertionCheck", { expectedOutcome: text, metExpectation: bool, reasoning: text });

/** A judge that asks a model. An answer in another format is an error, never a verdict. */
export class ModelJudge implements Judge {
  readonly #settings: ModelSettings;
  readonly #prompt: string;
  readonly #options: ChatOptions;

  constructor(settings: ModelSettings, prompt: string, options: ChatOptions = {}) {
    this.#settings = settings;
    this.#prompt = prompt;
    this.#options = options;
  }

  async judge({ assertions, trajectory }: Assertions, signal?: AbortSignal): Promise<readonly NlCheck[]> {
    const asked: Message[] = [
      { role: "system", content: this.#prompt },
      { role: "user", content: question(assertions, trajectory), tool_calls: null },
    ];
    const { content } = await chat(this.#settings, asked, { ...this.#options, signal });
    return verdicts(content ?? "");
  }
}

/** The layout, including spaces, is that of the reference. */
function question(assertions: readonly string[], trajectory: readonly Message[]): string {
  const pad = " ".repeat(8);
  const transcript = trajectory
    .map((message) => `${message.role}: ${("content" in message ? message.content : null) ?? "None"}`)
    .join("\n");
  const lines = ["", `${pad}conversation:`, pad + transcript, pad, `${pad}expectedOutcomes:`, pad + repr([...assertions]), pad];
  return lines.join("\n");
}

function verdicts(answer: string): NlCheck[] {
  const parsed = readJsonOr(answer, null);
  if (!(parsed instanceof Dict)) throw unusable(`the judge model's answer is not a JSON object: ${answer.slice(0, 300)}`);
  const results = parsed.get("results") ?? [];
  if (!Array.isArray(results)) throw unusable(`the judge model's 'results' is not a list: ${answer.slice(0, 300)}`);
  return results.map((item) => {
    const { expectedOutcome, metExpectation, reasoning } = validated(item);
    return { nl_assertion: expectedOutcome, met: metExpectation, justification: reasoning };
  });
}

function validated(item: PyValue): ReturnType<typeof Verdict.validate> {
  try {
    return Verdict.validate(item);
  } catch (error) {
    throw unusable(`a verdict of the judge model is invalid: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function unusable(problem: string): PlatformError {
  return new PlatformError("model.failed", problem);
}
