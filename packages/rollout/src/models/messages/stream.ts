import { isObject, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import { withNotation } from "../../player/arguments.ts";
import { ModelError } from "../../player/failure.ts";
import type { StreamReader } from "../dialect.ts";

type Loose = Record<string, unknown>;

/** Puts the events of a streamed message together. */
export class MessagesStream implements StreamReader {
  #message: Loose = {};
  readonly #blocks: Loose[] = [];
  readonly #inputs = new Map<number, string>();
  #isComplete = false;

  add(event: Loose): void {
    const { type, index, message, content_block, delta, usage, error } = event;
    switch (type) {
      case "message_start":
        if (isObject(message)) this.#message = { ...message };
        return;
      case "content_block_start":
        if (typeof index === "number" && isObject(content_block)) this.#blocks[index] = { ...content_block };
        return;
      case "content_block_delta":
        if (typeof index === "number" && isObject(delta)) this.#extend(index, delta);
        return;
      case "message_delta":
        if (isObject(delta)) Object.assign(this.#message, delta);
        if (isObject(usage)) this.#message.usage = { ...(isObject(this.#message.usage) ? this.#message.usage : {}), ...usage };
        return;
      case "message_stop":
        this.#isComplete = true;
        return;
      case "error":
        throw new ModelError(`the model's stream ended with an error: ${isObject(error) ? String(error.message) : "unknown"}`, {
          retryable: true,
        });
    }
  }

  get answer(): unknown {
    return this.#isComplete ? { ...this.#message, content: this.#blocks.map((block, index) => this.#finished(block, index)) } : null;
  }

  #extend(index: number, delta: Loose): void {
    const block = this.#blocks[index] ?? {};
    this.#blocks[index] = block;
    if (typeof delta.partial_json === "string") this.#inputs.set(index, (this.#inputs.get(index) ?? "") + delta.partial_json);
    for (const field of ["text", "thinking", "signature"]) {
      const piece = delta[field];
      if (typeof piece === "string") block[field] = (typeof block[field] === "string" ? block[field] : "") + piece;
    }
  }

  /** The input of a tool call comes as pieces of JSON text. */
  #finished(block: Loose, index: number): Loose {
    const text = this.#inputs.get(index);
    if (text === undefined || text === "") return block;
    try {
      const input = parseBoundedJson(text);
      return { ...block, input: withNotation(text) ?? input };
    } catch (cause) {
      if (cause instanceof ReadLimitExceeded) throw cause;
      throw new ModelError("the model's stream holds a tool call whose input is not JSON", { retryable: true, cause });
    }
  }
}
