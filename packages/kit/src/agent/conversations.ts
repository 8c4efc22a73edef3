import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { AgentEvent, Artifact, Part, ReceivedMessage } from "../definition/agent.ts";
import { ConversationFault } from "./fault.ts";
import { type ConversationData, readConversations, type StoredConversations, storeConversations } from "./stored.ts";
import {
  type ConversationTask,
  type IncomingMessage,
  isEnded,
  isRunning,
  type Message,
  type StoredArtifact,
  type TaskState,
  type TaskStatus,
  type TaskUpdate,
} from "./task.ts";

/** What answers the messages of an episode: an agent, or the tools of an environment without one. */
export interface TurnSource {
  /** The memory of a new conversation; undefined if conversations have none. */
  begin(controller: AbortController): unknown;
  turn(message: ReceivedMessage, memory: unknown, controller: AbortController): AsyncIterable<AgentEvent>;
  /** An answer without a task; null to begin one. */
  directAnswer?(message: IncomingMessage): readonly Part[] | null | Promise<readonly Part[] | null>;
  /** Runs a whole turn, so that its instance can end it. */
  run(turn: () => Promise<void>, controller: AbortController): Promise<void>;
  /** Called with an exception of the agent's code. */
  onFailure(error: unknown, controller: AbortController): void;
}

/** A message with a task of its own, or an answer without one. */
export type Sent = { readonly kind: "task"; readonly task: ConversationTask } | { readonly kind: "message"; readonly message: Message };

export interface ConversationLimits {
  /** Tasks that are kept. The oldest ones that do not run are dropped first. */
  readonly maxTasks: number;
  readonly maxRunningTasks: number;
  readonly maxContexts: number;
  /** Characters of messages and artifacts of all tasks that are kept. */
  readonly maxCharacters: number;
  /** A snapshot waits so long for running turns. */
  readonly snapshotWaitMs: number;
}

const LIMITS: ConversationLimits = {
  maxTasks: 1_000,
  maxRunningTasks: 256,
  maxContexts: 1_000,
  maxCharacters: 64 * 1_024 ** 2,
  snapshotWaitMs: 30_000,
};

interface Task extends ConversationTask {
  status: TaskStatus;
  order: number;
  readonly artifacts: StoredArtifact[];
  readonly history: Message[];
  controller: AbortController;
  characters: number;
  /** What its last turn has thrown in this process. */
  failure: unknown;
  readonly listeners: Set<(update: TaskUpdate) => void>;
}

interface Context {
  memory: unknown;
  hasBegun: boolean;
  /** Resolves when the last turn has ended. */
  last: Promise<void>;
  turns: number;
}

/** The conversations of one episode, with their tasks. All ids are counters, so equal episodes have equal ones. */
export class Conversations {
  readonly #source: TurnSource;
  readonly #limits: ConversationLimits;
  readonly #counters = { context: 0, task: 0, message: 0, order: 0 };
  readonly #contexts = new Map<string, Context>();
  readonly #tasks = new Map<string, Task>();
  #characters = 0;
  /** Turns that run or are queued. */
  #turns = 0;
  #isClosed = false;
  /** Messages wait for it while a snapshot is taken. */
  #hold: Promise<void> | null = null;
  #onIdle: (() => void) | undefined;
  #modelFailure: string | null = null;

  constructor(source: TurnSource, snapshot?: unknown, limits: ConversationLimits = LIMITS) {
    this.#source = source;
    this.#limits = limits;
    const found = readConversations(snapshot);
    if (found !== null) this.#load(found.data, found.times);
  }

  /** Why a model failed in this episode; null if none did. */
  get modelFailure(): string | null {
    return this.#modelFailure;
  }

  get isEmpty(): boolean {
    return this.#counters.task === 0 && this.#counters.message === 0;
  }

  /**
   * Takes a message. Its turn begins when those before it in its conversation have ended. `onTask` is called with its task before the
   * turn begins.
   */
  async send(message: IncomingMessage, onTask?: (task: ConversationTask) => void): Promise<Sent> {
    while (this.#hold !== null) await this.#hold;
    if (this.#isClosed) throw new PlatformError("request.cancelled", "the episode has ended");
    const earlier = message.taskId === undefined ? null : this.#open(message.taskId, message.contextId);
    if (earlier === null && this.#source.directAnswer !== undefined) {
      const parts = await this.#source.directAnswer(message);
      if (parts !== null) {
        const contextId = message.contextId ?? this.#newContextId();
        return { kind: "message", message: { messageId: this.#newMessageId(), role: "agent", parts, contextId } };
      }
    }
    const task = this.#begin(message, earlier);
    onTask?.(task);
    return { kind: "task", task };
  }

  find(taskId: string): ConversationTask | null {
    return this.#tasks.get(taskId) ?? null;
  }

  get(taskId: string): ConversationTask {
    return this.#get(taskId);
  }

  /** The exception that ended a task; null if it is not known. */
  failureOf(taskId: string): unknown {
    return this.#get(taskId).failure;
  }

  /** All tasks, the one with the newest status first. */
  list(): ConversationTask[] {
    return [...this.#tasks.values()].sort((one, other) => other.order - one.order);
  }

  /** The task of a conversation that waits for input, or null. */
  waitingIn(contextId: string): ConversationTask | null {
    return this.list().find((task) => task.contextId === contextId && task.status.state === "input-required") ?? null;
  }

  /** Ends a task. Its turn is aborted, and what the turn has changed in the memory is dropped. */
  cancel(taskId: string): ConversationTask {
    const task = this.#get(taskId);
    if (task.status.state === "canceled") return task;
    if (isEnded(task.status.state)) throw new ConversationFault("task_ended", `task '${taskId}' is ${task.status.state} already`);
    this.#setStatus(task, "canceled");
    task.controller.abort(new PlatformError("request.cancelled", "the task was cancelled"));
    return task;
  }

  /** Calls the listener with every later change of the task, in order. Call the returned function to stop that. */
  follow(taskId: string, listener: (update: TaskUpdate) => void): () => void {
    const { listeners } = this.#get(taskId);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Waits until the agent no longer works on the task. */
  async settled(taskId: string, signal?: AbortSignal): Promise<ConversationTask> {
    const task = this.#get(taskId);
    if (!isRunning(task.status.state)) return task;
    return new Promise((resolve, reject) => {
      const finish = () => {
        stop();
        signal?.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        finish();
        reject(signal?.reason);
      };
      const stop = this.follow(taskId, () => {
        if (isRunning(task.status.state)) return;
        finish();
        resolve(task);
      });
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** The episode has ended: cancels what runs or waits. */
  close(reason: string): void {
    this.#isClosed = true;
    for (const task of this.#tasks.values()) {
      if (!isRunning(task.status.state)) continue;
      this.#setStatus(task, "canceled");
      task.controller.abort(new PlatformError("request.cancelled", reason));
    }
  }

  /** Runs the work when no turn runs; later messages wait for it. */
  async whenIdle<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { promise, resolve: release } = Promise.withResolvers<void>();
    this.#hold = promise;
    try {
      await this.#untilIdle(signal);
      return await work();
    } finally {
      this.#hold = null;
      release();
    }
  }

  /** What a snapshot holds of them. */
  store(): StoredConversations {
    const tasks = [...this.#tasks.values()];
    const data = {
      counters: { ...this.#counters },
      memories: [...this.#contexts].flatMap(([id, { memory, hasBegun }]): [string, unknown][] => (hasBegun ? [[id, memory]] : [])),
      tasks: tasks.map(({ id, contextId, status, order, artifacts, history }) => ({
        id,
        contextId,
        state: status.state,
        message: status.message,
        order,
        artifacts,
        history,
      })),
      modelFailure: this.#modelFailure,
    };
    return storeConversations(
      data as unknown as ConversationData,
      tasks.map(({ status }) => status.at),
    );
  }

  #load({ counters, memories, tasks, modelFailure }: ConversationData, times: readonly number[]): void {
    Object.assign(this.#counters, counters);
    this.#modelFailure = modelFailure;
    for (const [id, memory] of memories) this.#contexts.set(id, { memory, hasBegun: true, last: Promise.resolve(), turns: 0 });
    for (const [at, { state, message, ...task }] of tasks.entries()) {
      const status = { state, message: message as Message | null, at: times[at] ?? 0 };
      const characters = sizeOf(task.artifacts as StoredArtifact[]) + sizeOf(task.history as Message[]);
      this.#characters += characters;
      const controller = new AbortController();
      this.#tasks.set(task.id, {
        ...(task as unknown as ConversationTask),
        status,
        controller,
        characters,
        failure: null,
        listeners: new Set(),
      } as Task);
    }
  }

  /** The task that a message continues. */
  #open(taskId: string, contextId: string | undefined): Task {
    const task = this.#get(taskId);
    if (contextId !== undefined && contextId !== task.contextId)
      throw new ConversationFault("wrong_context", `task '${taskId}' does not belong to context '${contextId}'`);
    if (isEnded(task.status.state))
      throw new ConversationFault("task_ended", `task '${taskId}' is ${task.status.state} and takes no further messages`);
    return task;
  }

  #get(taskId: string): Task {
    const task = this.#tasks.get(taskId);
    if (task === undefined) throw new ConversationFault("task_not_found", `no task '${taskId}'`);
    return task;
  }

  #begin(message: IncomingMessage, earlier: Task | null): Task {
    if (this.#turns >= this.#limits.maxRunningTasks)
      throw new ConversationFault("too_many", `${this.#turns} tasks are running or waiting; send more when one has ended`);
    this.#skipContextId(message.contextId);
    const contextId = earlier?.contextId ?? message.contextId ?? this.#newContextId();
    const context = this.#context(contextId);
    const task = earlier ?? this.#newTask(contextId);
    const received: Message = { ...message, role: "user", contextId, taskId: task.id };
    // Another turn of this task may be running; then the task goes on with this message afterwards.
    if (!isRunning(task.status.state)) {
      task.controller = new AbortController();
      this.#setStatus(task, "submitted");
    }
    this.#remember(task, received);
    context.turns++;
    this.#turns++;
    context.last = context.last.then(() => this.#turn(task, context, received)).finally(() => this.#leave(contextId, context));
    this.#dropOld();
    return task;
  }

  #context(id: string): Context {
    let context = this.#contexts.get(id);
    if (context === undefined) {
      if (this.#contexts.size >= this.#limits.maxContexts)
        throw new ConversationFault("too_many", `the episode has ${this.#contexts.size} conversations already; continue one of them`);
      context = { memory: undefined, hasBegun: false, last: Promise.resolve(), turns: 0 };
      this.#contexts.set(id, context);
    }
    return context;
  }

  /** A turn has ended. A conversation without a memory is nothing but its tasks. */
  #leave(id: string, context: Context): void {
    context.turns--;
    this.#turns--;
    if (this.#turns === 0) this.#onIdle?.();
    if (context.turns === 0 && !context.hasBegun) this.#contexts.delete(id);
  }

  async #turn(task: Task, context: Context, message: Message): Promise<void> {
    if (isEnded(task.status.state)) return;
    try {
      await this.#source.run(() => this.#answer(task, context, message), task.controller);
    } catch (error) {
      this.#fail(task, error);
    }
  }

  async #answer(task: Task, context: Context, { messageId, parts, metadata, contextId }: Message): Promise<void> {
    const { controller } = task;
    if (task.status.state !== "working") this.#setStatus(task, "working");
    if (!context.hasBegun) {
      const memory = await this.#source.begin(controller);
      context.memory = memory;
      context.hasBegun = memory !== undefined;
    }
    const memory = copyOf(context.memory);
    const received = { messageId, contextId, taskId: task.id, parts, ...(metadata !== undefined && { metadata }) };
    let end: { readonly state: TaskState; readonly parts: readonly Part[] | null } = { state: "completed", parts: null };
    let hasEnd = false;
    for await (const event of this.#source.turn(received, memory, controller)) {
      // Its instance may have ended it, while its code goes on.
      if (controller.signal.aborted || isEnded(task.status.state)) return;
      if (event.kind === "artifact") this.#addArtifact(task, event.artifact, event.append === true, event.last === true);
      else if (event.kind === "message") this.#setStatus(task, "working", event.parts);
      else {
        if (hasEnd) throw new Error("the turn has ended already: a turn has one question, answer or refusal");
        hasEnd = true;
        end = { state: ENDS[event.kind], parts: event.parts };
      }
    }
    if (controller.signal.aborted || isEnded(task.status.state)) return;
    // In one tick, so that a snapshot has both or neither.
    if (context.hasBegun) context.memory = memory;
    this.#setStatus(task, end.state, end.parts);
  }

  #fail(task: Task, error: unknown): void {
    if (isPlatformError(error, "model.failed")) this.#modelFailure ??= error.message;
    if (isEnded(task.status.state)) return;
    if (isPlatformError(error, "request.cancelled")) {
      this.#setStatus(task, "canceled");
      return;
    }
    this.#source.onFailure(error, task.controller);
    task.failure = error;
    const code = isPlatformError(error) ? { metadata: { code: error.code } } : {};
    this.#setStatus(task, "failed", [{ text: messageOf(error), ...code }]);
  }

  #addArtifact(task: Task, given: Artifact, append: boolean, last: boolean): void {
    const artifactId = given.artifactId ?? `artifact-${task.artifacts.length + 1}`;
    const at = task.artifacts.findIndex((one) => one.artifactId === artifactId);
    const artifact: StoredArtifact = { ...given, artifactId };
    const earlier = task.artifacts[at];
    if (append && earlier === undefined) throw new Error(`the task has no artifact '${artifactId}' to append to`);
    if (earlier === undefined) task.artifacts.push(artifact);
    else task.artifacts[at] = append ? { ...earlier, parts: [...earlier.parts, ...artifact.parts] } : artifact;
    this.#count(task, sizeOf([artifact]));
    this.#tell(task, { kind: "artifact", artifact, append, last });
  }

  #setStatus(task: Task, state: TaskState, parts: readonly Part[] | null = null): void {
    const { contextId, id: taskId } = task;
    if (task.status.message !== null) this.#remember(task, task.status.message);
    const message: Message | null = parts === null ? null : { messageId: this.#newMessageId(), role: "agent", parts, contextId, taskId };
    task.status = { state, message, at: Date.now() };
    task.order = ++this.#counters.order;
    this.#tell(task, { kind: "status", status: task.status });
  }

  #tell(task: Task, update: TaskUpdate): void {
    for (const listener of [...task.listeners]) listener(update);
  }

  #newTask(contextId: string): Task {
    const task: Task = {
      id: `task-${++this.#counters.task}`,
      contextId,
      status: { state: "submitted", message: null, at: Date.now() },
      order: ++this.#counters.order,
      artifacts: [],
      history: [],
      controller: new AbortController(),
      characters: 0,
      failure: null,
      listeners: new Set(),
    };
    this.#tasks.set(task.id, task);
    return task;
  }

  #newContextId(): string {
    return `context-${++this.#counters.context}`;
  }

  /** A caller that has chosen such an id must not get the conversation of another one. */
  #skipContextId(chosen: string | undefined): void {
    const number = Number(/^context-([1-9]\d{0,14})$/.exec(chosen ?? "")?.[1] ?? 0);
    this.#counters.context = Math.max(this.#counters.context, number);
  }

  #newMessageId(): string {
    return `message-${++this.#counters.message}`;
  }

  #remember(task: Task, message: Message): void {
    task.history.push(message);
    this.#count(task, sizeOf([message]));
  }

  #count(task: Task, characters: number): void {
    task.characters += characters;
    this.#characters += characters;
  }

  #dropOld(): void {
    for (const [id, task] of this.#tasks) {
      if (this.#tasks.size <= this.#limits.maxTasks && this.#characters <= this.#limits.maxCharacters) return;
      if (isRunning(task.status.state)) continue;
      this.#tasks.delete(id);
      this.#characters -= task.characters;
    }
  }

  async #untilIdle(signal: AbortSignal): Promise<void> {
    if (this.#turns === 0) return;
    const { snapshotWaitMs } = this.#limits;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      const running = [...this.#tasks.values()].flatMap(({ id, status }) => (isRunning(status.state) ? [id] : []));
      reject(new PlatformError("instance.busy", `the agent still works on ${running.join(", ")} after ${snapshotWaitMs} ms; retry later`));
    }, snapshotWaitMs);
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#onIdle = resolve;
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#onIdle = undefined;
    }
  }
}

const ENDS = { question: "input-required", answer: "completed", refusal: "rejected" } as const;

function copyOf(memory: unknown): unknown {
  try {
    return structuredClone(memory);
  } catch (error) {
    throw new Error(`the agent's memory is not plain data: ${messageOf(error)}`, { cause: error });
  }
}

function sizeOf(holders: readonly { readonly parts: readonly Part[] }[]): number {
  let size = 0;
  for (const { parts } of holders) {
    for (const part of parts) {
      if ("text" in part) size += part.text.length;
      else if ("raw" in part) size += part.raw.length;
      else if ("data" in part) size += JSON.stringify(part.data).length;
    }
  }
  return size;
}
