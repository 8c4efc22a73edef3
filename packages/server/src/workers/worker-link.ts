import type { FindDelegate } from "../access/access.ts";
import type { RewardPhases } from "../instances/reward-phases.ts";
import { type InstanceRow, isLive } from "../instances/row.ts";
import type { Store, Versioned } from "../stores/store.ts";
import type { DelegateAnswer, FromWorker, Question, ToWorker } from "./messages.ts";
import { sendableError } from "./sent-error.ts";

export interface WorkerLinkOptions {
  readonly store: Store;
  readonly delegates: FindDelegate;
  readonly rewardPhases: Pick<RewardPhases, "enter" | "left">;
  readonly onUse: (row: InstanceRow) => void;
  readonly onUsed: (row: InstanceRow) => void;
}

/** The messages that a link handles itself. */
export type LinkMessage = Extract<FromWorker, { type: "question" | "used" | "unused" | "left reward" | "confirmed" }>;

/** What a server knows about one worker: which rows it has read, which instances it uses, and what it was asked to confirm. */
export class WorkerLink {
  readonly #options: WorkerLinkOptions;
  readonly #send: (message: ToWorker) => void;
  /** Ids of instances whose changes it must be told. */
  readonly #interests = new Set<string>();
  /** Tokens that it has asked about, and whose end it must be told. */
  readonly #delegates = new Set<string>();
  readonly #used = new Map<string, InstanceRow>();
  readonly #leavePhase = new Map<number, () => void>();
  readonly #unconfirmed = new Map<number, () => void>();
  #lastId = 0;
  #isClosed = false;

  constructor(options: WorkerLinkOptions, send: (message: ToWorker) => void) {
    this.#options = options;
    this.#send = send;
  }

  /** How many tokens and instances it is told about. */
  get interests(): number {
    return this.#interests.size + this.#delegates.size;
  }

  onMessage(message: LinkMessage): void {
    // A message may arrive after the exit of its sender.
    if (this.#isClosed) return;
    switch (message.type) {
      case "question":
        void this.#answer(message.id, message.question);
        return;
      case "used":
        this.#onUsed(message.row);
        return;
      case "unused":
        this.#onUnused(message.instanceId);
        return;
      case "left reward":
        this.#leavePhase.get(message.phase)?.();
        this.#leavePhase.delete(message.phase);
        return;
      case "confirmed":
        this.#unconfirmed.get(message.id)?.();
        this.#unconfirmed.delete(message.id);
    }
  }

  /** Tells it about a changed row that it has read. False if it has not. */
  note(row: InstanceRow): boolean {
    if (!this.#interests.has(row.id)) return false;
    // It does not use an ended one any more, so there is nothing further to tell.
    if (!isLive(row)) this.#interests.delete(row.id);
    this.#send({ type: "row", row });
    return true;
  }

  delegateEnded(token: string): void {
    if (this.#delegates.delete(token)) this.#send({ type: "delegate ended", token });
  }

  /** Resolves when all earlier messages have taken effect in the worker, or it has ended. */
  confirmed(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#unconfirmed.set(id, resolve);
      this.#send({ type: "confirm", id });
    });
  }

  /** The worker has ended, and with it all that it did. */
  close(): void {
    this.#isClosed = true;
    for (const row of this.#used.values()) this.#options.onUsed(row);
    for (const leave of this.#leavePhase.values()) leave();
    for (const resolve of this.#unconfirmed.values()) resolve();
    this.#used.clear();
    this.#leavePhase.clear();
    this.#unconfirmed.clear();
  }

  async #answer(id: number, question: Question): Promise<void> {
    try {
      this.#send({ type: "answer", id, value: await this.#valueOf(question) });
    } catch (error) {
      this.#send({ type: "error", id, error: sendableError(error) });
    }
  }

  #valueOf(question: Question): unknown {
    const { store } = this.#options;
    switch (question.what) {
      case "get":
        return question.kind === "instance" ? this.#getInstance(question.key) : store.get(question.kind, question.key);
      case "list":
        return store.list(question.kind, question.options);
      case "swap":
        return store.swap(question.kind, question.key, question.rev, question.value, question.indexes);
      case "delegate":
        return this.#findDelegate(question.token);
      case "enter reward":
        return this.#enterReward(question.row);
      case "left reward":
        return this.#options.rewardPhases.left(question.row) ?? undefined;
    }
  }

  /** The interest comes before the read here too. A token that nobody has granted never ends, so it is not remembered. */
  async #findDelegate(token: string): Promise<DelegateAnswer> {
    this.#delegates.add(token);
    const caller = await this.#options.delegates.find(token);
    if (caller === null) this.#delegates.delete(token);
    return caller;
  }

  /** The interest comes before the read, so that the worker misses no change: it prefers what it is told to an answer that follows. */
  async #getInstance(id: string): Promise<Versioned<InstanceRow> | null> {
    this.#interests.add(id);
    const row = await this.#options.store.get<InstanceRow>("instance", id);
    if (row === null || !isLive(row.value)) this.#interests.delete(id);
    return row;
  }

  async #enterReward(row: Extract<Question, { what: "enter reward" }>["row"]): Promise<number> {
    const leave = (await this.#options.rewardPhases.enter(row)) ?? (() => {});
    const phase = ++this.#lastId;
    if (this.#isClosed) leave();
    else this.#leavePhase.set(phase, leave);
    return phase;
  }

  /** May be repeated. The later use begins first, so that the instance is not idle in between. */
  #onUsed(row: InstanceRow): void {
    const before = this.#used.get(row.id);
    this.#options.onUse(row);
    this.#used.set(row.id, row);
    if (before !== undefined) this.#options.onUsed(before);
  }

  #onUnused(instanceId: string): void {
    const row = this.#used.get(instanceId);
    this.#used.delete(instanceId);
    if (row !== undefined) this.#options.onUsed(row);
  }
}
