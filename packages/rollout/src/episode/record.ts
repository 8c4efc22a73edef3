import type { ChatMessage, Conversation, Step, ToolDescriptor, Turn } from "@aenv/contract";
import { isBeginningOf } from "./conversation.ts";

interface Current {
  messages: ChatMessage[];
  /** Null until a request to the model has shown them. */
  tools: readonly ToolDescriptor[] | null;
}

/** What has happened in an episode so far. A fork copies it and goes on by itself. */
export class EpisodeRecord {
  readonly steps: Step[];
  readonly turns: Turn[];
  #current: Current;
  /** Conversations beside the current one. */
  readonly #others: Current[];
  #report: Readonly<Record<string, unknown>> | null = null;

  constructor(messages: readonly ChatMessage[] = [], steps: readonly Step[] = [], turns: readonly Turn[] = []) {
    this.#current = { messages: [...messages], tools: null };
    this.#others = [];
    this.steps = [...steps];
    this.turns = [...turns];
  }

  /** What a program said about its end. */
  get programReport(): Readonly<Record<string, unknown>> | null {
    return this.#report;
  }

  report(facts: Readonly<Record<string, unknown>>): void {
    this.#report = { ...this.#report, ...facts };
  }

  /** The conversation of the last turn. */
  get messages(): ChatMessage[] {
    return this.#current.messages;
  }

  get offeredTools(): readonly ToolDescriptor[] | null {
    return this.#current.tools;
  }

  get conversations(): Conversation[] {
    return this.#others.map(({ messages, tools }) => ({ messages: [...messages], tools: [...(tools ?? [])] }));
  }

  /**
   * What a program's request shows to the model becomes the current conversation. It goes on with the one that it begins with; if there
   * is none, the program has begun another one or has rewritten the last, and both are kept, because the model has seen both.
   */
  show(seen: Conversation, continues: string | null): void {
    const messages = continues === null ? seen.messages : [...this.#before(continues, seen.messages), ...seen.messages.filter(isNotSystem)];
    this.#choose(messages);
    this.#current.messages.push(...messages.slice(this.#current.messages.length));
    this.#current.tools = seen.tools;
  }

  copy(): EpisodeRecord {
    const copy = new EpisodeRecord(this.messages, this.steps, this.turns);
    copy.#current.tools = this.#current.tools;
    copy.#others.push(...this.#others.map(({ messages, tools }) => ({ messages: [...messages], tools })));
    return copy;
  }

  #choose(messages: readonly ChatMessage[]): void {
    if (isBeginningOf(this.messages, messages)) return;
    const at = this.#others.findIndex((other) => isBeginningOf(other.messages, messages));
    const found = this.#others[at];
    if (found !== undefined) {
      this.#others[at] = this.#current;
      this.#current = found;
      this.#move((of) => (of === undefined ? at : of === at ? undefined : of));
    } else {
      // What the environment proposed as the beginning, and the program did not use, is no conversation.
      if (this.turns.some(({ conversation }) => conversation === undefined)) {
        const last = this.#others.push(this.#current) - 1;
        this.#move((of) => of ?? last);
      }
      this.#current = { messages: [], tools: null };
    }
  }

  #move(to: (conversation: number | undefined) => number | undefined): void {
    for (const [at, { conversation, ...turn }] of this.turns.entries()) {
      const moved = to(conversation);
      this.turns[at] = { ...turn, ...(moved !== undefined && { conversation: moved }) };
    }
  }

  /** The conversation of an earlier answer, with the instructions of the new request, which replace the earlier ones. */
  #before(completionId: string, messages: readonly ChatMessage[]): readonly ChatMessage[] {
    const turn = this.turns.find(({ completion_id }) => completion_id === completionId);
    const { messages: earlier } = (turn?.conversation === undefined ? this.#current : this.#others[turn.conversation]) ?? this.#current;
    const kept = turn === undefined || turn.message === null ? [] : earlier.slice(0, turn.message + 1);
    return [...messages.filter((message) => !isNotSystem(message)), ...kept.filter(isNotSystem)];
  }
}

function isNotSystem({ role }: ChatMessage): boolean {
  return role !== "system";
}
