import { isObject } from "@aenv/contract";
import type { StreamReader } from "../dialect.ts";

type Loose = Record<string, unknown>;

/** Puts the chunks of a streamed chat completion together, to what the same request would have answered without a stream. */
export class ChatStream implements StreamReader {
  readonly #whole: Loose = {};
  readonly #message: Loose = { role: "assistant", content: "" };
  readonly #choice: Loose = { index: 0, message: this.#message, finish_reason: null };
  readonly #calls: Loose[] = [];
  readonly #logprobs: unknown[] = [];

  add(chunk: Loose): void {
    const { choices, ...head } = chunk;
    for (const [key, value] of Object.entries(head)) if (value !== null && value !== undefined) this.#whole[key] = value;
    const choice = Array.isArray(choices) ? choices.find((one) => isObject(one) && (one.index ?? 0) === 0) : undefined;
    if (!isObject(choice)) return;
    const { delta, finish_reason, logprobs, token_ids, prompt_token_ids } = choice;
    if (finish_reason !== null && finish_reason !== undefined) this.#choice.finish_reason = finish_reason;
    if (isObject(delta)) this.#addDelta(delta);
    if (isObject(logprobs) && Array.isArray(logprobs.content)) {
      this.#logprobs.push(...logprobs.content);
      this.#choice.logprobs = { content: this.#logprobs };
    }
    if (Array.isArray(token_ids)) this.#choice.token_ids = [...((this.#choice.token_ids as unknown[] | undefined) ?? []), ...token_ids];
    if (Array.isArray(prompt_token_ids)) this.#choice.prompt_token_ids = prompt_token_ids;
  }

  /** Null if the stream broke off before the model finished. */
  get answer(): Loose | null {
    if (this.#choice.finish_reason === null) return null;
    if (this.#calls.length > 0) this.#message.tool_calls = this.#calls.filter((call) => call !== undefined);
    return { ...this.#whole, object: "chat.completion", choices: [this.#choice] };
  }

  #addDelta({ tool_calls, role: _, ...fields }: Loose): void {
    // Texts such as `content` and `reasoning_content` come in pieces; everything else comes whole.
    for (const [key, value] of Object.entries(fields)) {
      if (typeof value === "string") this.#message[key] = ((this.#message[key] as string | undefined) ?? "") + value;
      else if (value !== null && value !== undefined) this.#message[key] = value;
    }
    if (!Array.isArray(tool_calls)) return;
    for (const part of tool_calls) if (isObject(part)) this.#addCall(part);
  }

  #addCall({ index, function: called, ...rest }: Loose): void {
    const at = typeof index === "number" ? index : this.#calls.length;
    const call = this.#calls[at] ?? { type: "function", function: { name: "", arguments: "" } };
    this.#calls[at] = call;
    for (const [key, value] of Object.entries(rest)) if (value !== null && value !== undefined) call[key] = value;
    if (!isObject(called)) return;
    const held = call.function as { name: string; arguments: string };
    if (typeof called.name === "string") held.name += called.name;
    if (typeof called.arguments === "string") held.arguments += called.arguments;
  }
}
