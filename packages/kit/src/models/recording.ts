import { createHash } from "node:crypto";
import {
  canonicalJson,
  isObject,
  type ModelCall,
  type ModelCallAnswer,
  PlatformError,
  type RecordedAnswer,
  type RecordedExchange,
  type RecordingMode,
  type RecordingRequest,
  recordedAnswer,
  recordedExchange,
  recordingModes,
} from "@aenv/contract";
import * as z from "zod";

/** What a snapshot holds of a recording, so that a fork goes on with it. */
const storedRecording = z.object({
  mode: z.enum(recordingModes),
  exchanges: z.array(recordedExchange),
  left: z.array(recordedAnswer),
  steps: z.int().min(0),
});
export type StoredRecording = z.infer<typeof storedRecording>;

/** The rest of a larger recording is not kept, and reading it fails. */
const MAX_CHARACTERS = 64 * 1_024 ** 2;
/** A conversation usually goes on from one of the last ones. */
const SEARCHED = 32;

/** The calls of models in one episode, and the recorded answers that it was given. */
export class Recording {
  readonly #mode: RecordingMode;
  readonly #exchanges: RecordedExchange[] = [];
  /** The whole conversations of the last exchanges, each message as text, to find what a new one begins with. */
  readonly #conversations: { readonly n: number; readonly messages: readonly string[] }[] = [];
  readonly #left = new Map<string, RecordedAnswer[]>();
  readonly #maxCharacters: number;
  #characters = 0;
  #isFull = false;
  /** Calls of tools by the agent that have begun. */
  #steps = 0;

  constructor({ mode, entries = [] }: RecordingRequest = { mode: "live" }, maxCharacters = MAX_CHARACTERS) {
    this.#mode = mode;
    this.#maxCharacters = maxCharacters;
    for (const entry of entries) if (entry.path === "") this.#leave(entry as RecordedAnswer);
  }

  static from(snapshot: unknown): Recording {
    if (!isObject(snapshot) || snapshot.recording === undefined) return new Recording();
    const { success, data: stored } = storedRecording.safeParse(snapshot.recording);
    if (!success)
      throw new PlatformError("snapshot.invalid", "this snapshot cannot be restored: its recording is not one of calls of models");
    const recording = new Recording({ mode: stored.mode });
    recording.#steps = stored.steps;
    for (const answer of stored.left) recording.#leave(answer);
    for (const exchange of stored.exchanges) recording.#keep(exchange);
    return recording;
  }

  get isEmpty(): boolean {
    return this.#mode === "live" && this.#exchanges.length === 0 && this.#steps === 0;
  }

  /** The place of a call of a tool that begins. */
  nextStep(): number {
    return this.#steps++;
  }

  /** The recorded answer to a call, or that of the model. */
  async answer(model: string, call: ModelCall, calledBy: number | null, ask: () => Promise<ModelCallAnswer>): Promise<ModelCallAnswer> {
    const digest = `sha256:${createHash("sha256").update(canonicalJson(call)).digest("hex")}`;
    const recorded = this.#mode === "live" ? undefined : this.#left.get(keyOf(model, digest))?.shift();
    if (recorded === undefined && this.#mode === "recorded")
      throw new PlatformError(
        "model.failed",
        `the recording has no answer to this call of model '${model}' (${digest}): the episode has gone another way, or the recording is of another version`,
        { retryable: false },
      );
    const answer = recorded?.answer ?? (await ask());
    this.#add(model, digest, call, calledBy, answer);
    return answer;
  }

  /** The whole recording; an error if a part of it was not kept. */
  read(): readonly RecordedExchange[] {
    if (this.#isFull)
      throw new PlatformError(
        "sandbox.answer_too_large",
        `the recording of this episode is larger than ${this.#maxCharacters} characters, so it is not complete`,
      );
    return this.#exchanges;
  }

  store(): StoredRecording {
    return { mode: this.#mode, exchanges: [...this.#exchanges], left: [...this.#left.values()].flat(), steps: this.#steps };
  }

  #leave(answer: RecordedAnswer): void {
    const key = keyOf(answer.model, answer.digest);
    const others = this.#left.get(key);
    if (others === undefined) this.#left.set(key, [answer]);
    else others.push(answer);
  }

  #add(model: string, digest: string, { messages, tools }: ModelCall, calledBy: number | null, answer: ModelCallAnswer): void {
    if (this.#isFull) return;
    const texts = messages.map((message) => JSON.stringify(message));
    const base = this.#baseOf(texts);
    const n = this.#exchanges.length;
    // A copy: the environment's code may change what it has sent.
    const added = structuredClone(messages.slice(base?.messages ?? 0));
    this.#keep({ path: "", model, n, digest, base, messages: added, tools, called_by: calledBy, answer });
    this.#conversations.push({ n, messages: [...texts, JSON.stringify(answer.message)] });
    if (this.#conversations.length > SEARCHED) this.#conversations.shift();
  }

  #keep(exchange: RecordedExchange): void {
    this.#characters += JSON.stringify(exchange).length;
    if (this.#characters > this.#maxCharacters) this.#isFull = true;
    else this.#exchanges.push(exchange);
  }

  /** The last exchange whose conversation, with its answer, the new one begins with. */
  #baseOf(texts: readonly string[]): RecordedExchange["base"] {
    const found = this.#conversations.findLast(
      ({ messages }) => messages.length <= texts.length && messages.every((text, at) => text === texts[at]),
    );
    return found === undefined ? null : { n: found.n, messages: found.messages.length };
  }
}

function keyOf(model: string, digest: string): string {
  return `${model}\n${digest}`;
}
