import { isPlatformError, PlatformError } from "@aenv/kit";
import type { Participant } from "../conversation/orchestrator.ts";
import type { Message, ParticipantMessage } from "../core/messages/messages.ts";
import { parseMessage } from "../core/messages/stored.ts";
import { readJson } from "../python/json/reader.ts";
import { writeJson } from "../python/json/writer.ts";
import { Dict, type PyValue } from "../python/values/values.ts";

/** A reply of the user, or its error. JSON text keeps ints and floats apart. */
export type RecordedReply = { readonly message: string } | { readonly failure: string; readonly isOfModel?: true };

/** A user whose replies are recorded: recorded replies are repeated, then the live user continues. */
export class RecordedUser implements Participant {
  readonly #replies: RecordedReply[];
  readonly #live: Participant;
  #position = 0;

  constructor(live: Participant, replies: readonly RecordedReply[] = []) {
    this.#live = live;
    this.#replies = [...replies];
  }

  get replies(): readonly RecordedReply[] {
    return this.#replies;
  }

  /** Keeps the first `kept` replies and starts again with the first. */
  rewind(kept: number): void {
    this.#replies.length = Math.min(kept, this.#replies.length);
    this.#position = 0;
  }

  async reply(history: readonly Message[], signal?: AbortSignal): Promise<ParticipantMessage> {
    const known = this.#replies[this.#position++];
    if (known !== undefined) return repeat(known);
    try {
      const message = await this.#live.reply(history, signal);
      this.#replies.push({ message: writeJson(stored(message)) });
      return message;
    } catch (error) {
      // A cancelled request is not recorded: it is sent again later.
      if (signal?.aborted) throw error;
      const failure = error instanceof Error ? error.message : String(error);
      this.#replies.push({ failure, ...(isPlatformError(error, "model.failed") && { isOfModel: true }) });
      throw error;
    }
  }
}

function repeat(reply: RecordedReply): ParticipantMessage {
  if ("failure" in reply) throw reply.isOfModel === true ? new PlatformError("model.failed", reply.failure) : new Error(reply.failure);
  const message = parseMessage(readJson(reply.message));
  if (message.role !== "user") throw new Error(`a recorded user message has the role '${message.role}'`);
  return message;
}

function stored({ role, content, tool_calls }: ParticipantMessage): Dict {
  const calls = tool_calls?.map(({ id, name, arguments: args, requestor }) => Dict.of({ id, name, arguments: args, requestor })) ?? null;
  return new Dict<PyValue>([
    ["role", role],
    ["content", content],
    ["tool_calls", calls],
  ]);
}
