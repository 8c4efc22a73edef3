import { isBlank, strip } from "@aenv/benchmark";
import { isPlatformError, PlatformError } from "@aenv/kit";
import { type AgentAction, Gym } from "../conversation/gym.ts";
import { STOP_TOKEN } from "../conversation/history.ts";
import type { Participant } from "../conversation/orchestrator.ts";
import type { Domain } from "../core/domain.ts";
import { parseAction } from "../core/messages/action.ts";
import type { Message, ToolCall } from "../core/messages/messages.ts";
import { printScenario, type Task } from "../core/tasks.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import { userTools } from "../core/user-prompt.ts";
import { ModelJudge } from "../llm/judge.ts";
import { RecordedUser } from "../llm/recorded-user.ts";
import { UserSimulator } from "../llm/user.ts";
import { agentPrompt, readPrompts, userPrompt } from "../prompts/prompts.ts";
import { schemaOf } from "../prompts/tool-schemas.ts";
import { type EpisodeRecord, fromRecord, toRecord } from "./record.ts";
import type { Settings } from "./settings.ts";

export interface ActionResult {
  readonly observation: string;
  readonly reward: number | null;
  readonly done: boolean;
  readonly step: number;
  /** Why the episode has no reward. */
  readonly unscored?: string;
}

/** One episode: an agent works on one task. */
export class Episode {
  readonly domain: Domain;
  readonly task: Task;
  readonly isSolo: boolean;
  readonly maxSteps: number;
  readonly #gym: Gym;
  readonly #user: RecordedUser | null;
  readonly #actions: AgentAction[] = [];
  readonly #rewards: (number | null)[] = [];
  #unscored: string | null = null;
  #isModelFailure = false;
  #lastObservation = "";
  /** What the agent wrote beside the call that comes next. */
  #words: string | null = null;
  #opening: readonly Message[] = [];
  /** Actions run one after another: there is one conversation. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(domain: Domain, settings: Settings, chosen: Pick<EpisodeRecord, "taskId" | "isSolo" | "maxSteps" | "replies">) {
    const task = domain.tasks.find(chosen.taskId);
    if (task === undefined) throw new Error(`No task found with id ${chosen.taskId} for domain ${domain.name}`);
    this.domain = domain;
    this.task = task;
    this.isSolo = chosen.isSolo;
    this.maxSteps = chosen.maxSteps;
    const prompts = readPrompts(domain.data);
    this.#user = chosen.replies === null ? null : new RecordedUser(liveUser(domain, task, settings), chosen.replies);
    const judge = settings.judge === null ? null : new ModelJudge(settings.judge, prompts.judge);
    this.#gym = new Gym({ domain, task, isSolo: chosen.isSolo, user: this.#user, judge, maxSteps: chosen.maxSteps });
  }

  static async open(domain: Domain, settings: Settings, signal?: AbortSignal): Promise<Episode> {
    const taskId = settings.taskId ?? domain.tasks.select(domain.definition.defaultSplit)[0]?.id ?? "";
    const isSolo = settings.isSolo ?? domain.definition.soloError === null;
    if (isSolo && domain.tasks.find(taskId)?.initial_state?.message_history?.some(({ role }) => role === "user")) {
      throw new Error(`task '${taskId}' begins with messages of a user, which a solo episode does not have: set TAU2_SOLO_MODE=false`);
    }
    const replies = isSolo || settings.user === null ? null : [];
    const episode = new Episode(domain, settings, { taskId, isSolo, maxSteps: settings.maxSteps, replies });
    await episode.#begin(signal);
    const reward = await episode.#score(signal);
    signal?.throwIfAborted();
    // The user may end the episode before the agent's first action.
    if (episode.isDone && reward !== null) episode.#rewards.push(reward);
    return episode;
  }

  /** Continues a recorded episode: runs its actions again, with the recorded replies of the user. */
  static async restore(domain: Domain, settings: Settings, record: EpisodeRecord, signal?: AbortSignal): Promise<Episode> {
    const episode = new Episode(domain, settings, record);
    const actions = record.actions.map(fromRecord);
    await episode.#replay(actions, signal);
    signal?.throwIfAborted();
    episode.#actions.push(...actions);
    episode.#rewards.push(...record.rewards);
    episode.#unscored = record.unscored;
    episode.#isModelFailure = record.isModelFailure === true;
    return episode;
  }

  /** Waits for the action in progress. */
  record(): Promise<EpisodeRecord> {
    return this.#serialize(async () => ({
      domain: this.domain.name,
      taskId: this.task.id,
      isSolo: this.isSolo,
      maxSteps: this.maxSteps,
      actions: this.#actions.map(toRecord),
      replies: this.#user === null ? null : [...this.#user.replies],
      rewards: [...this.#rewards],
      unscored: this.#unscored,
      ...(this.#isModelFailure && { isModelFailure: true }),
    }));
  }

  get isDone(): boolean {
    return this.#gym.isDone;
  }

  get steps(): number {
    return this.#actions.length;
  }

  get rewards(): readonly (number | null)[] {
    return this.#rewards;
  }

  /** Null if the episode cannot be scored; `unscored` has the reason. */
  get totalReward(): number | null {
    if (this.#unscored !== null) return null;
    return this.#rewards.reduce<number | null>((sum, reward) => (sum === null || reward === null ? null : sum + reward), 0);
  }

  get unscored(): string | null {
    return this.#unscored;
  }

  /** The error of a reward that cannot be computed; null if it can. */
  get failure(): Error | null {
    if (this.#unscored === null) return null;
    const message = `this episode is unscored: ${this.#unscored}`;
    return this.#isModelFailure ? new PlatformError("model.failed", message) : new Error(message);
  }

  /** The agent's last observation, without the sender's name. */
  get lastObservation(): string {
    return strip(this.#lastObservation.replace(/^(user|tool): /, ""));
  }

  /** The observation of a new episode: the ticket in solo mode, else the user's first message; null if there is neither. */
  get firstObservation(): string | null {
    return (this.isSolo ? this.task.ticket : null) ?? (this.lastObservation || null);
  }

  /** The messages that the agent saw when the episode began: the greeting and the user's answer, or the task's own history. */
  get opening(): readonly Message[] {
    return this.#opening;
  }

  /** Whether the user spoke last. */
  get isAnswered(): boolean {
    return this.#gym.crash === null && this.#gym.orchestrator.agentMessages.at(-1)?.role === "user";
  }

  get terminationReason(): string | null {
    return this.#gym.reason;
  }

  /** The hashes of both sides' databases. */
  get stateHashes(): readonly [string | null, string | null] {
    return this.#gym.orchestrator.environment.hashes();
  }

  systemPrompt(): string {
    const prompts = readPrompts(this.domain.data);
    return agentPrompt(prompts, this.domain.policy(this.isSolo), this.isSolo ? { ticket: this.task.ticket } : null);
  }

  tools(): JsonSchema[] {
    return this.#gym.tools();
  }

  /** Keeps what the agent writes beside a call, for the call that comes next. */
  hear(words: string): void {
    this.#words = isBlank(words) ? null : words;
  }

  /** Runs an agent's action. A cancelled action is undone. */
  act(given: AgentAction, signal?: AbortSignal): Promise<ActionResult> {
    return this.#serialize(async () => {
      signal?.throwIfAborted();
      const action = this.#words !== null && isCall(given) ? { call: given, words: this.#words } : given;
      if (this.isDone) return this.#result(0);
      if (this.#user === null && !this.isSolo && isMessageToUser(action)) {
        throw new Error("no model plays the user: set TAU2_USER_LLM, TAU2_USER_LLM_API_BASE and TAU2_USER_LLM_API_KEY to send messages");
      }
      const repliesBefore = this.#user?.replies.length ?? 0;
      const { observation, reward } = await this.#step(action, signal);
      if (signal?.aborted) {
        await this.#undo(repliesBefore);
        throw signal.reason;
      }
      this.#words = null;
      this.#actions.push(action);
      this.#rewards.push(reward);
      this.#observe(observation);
      return this.#result(reward);
    });
  }

  async #step(action: AgentAction, signal: AbortSignal | undefined): Promise<{ observation: string; reward: number | null }> {
    const problem = await this.#gym.play(action, signal);
    if (problem !== null) return { observation: problem, reward: 0 };
    return { observation: this.#gym.observation(), reward: await this.#score(signal) };
  }

  /** Restores the state after the last completed action. */
  async #undo(replies: number): Promise<void> {
    this.#user?.rewind(replies);
    this.#unscored = null;
    this.#isModelFailure = false;
    await this.#replay(this.#actions);
  }

  /** Restarts the episode and runs these actions, with the recorded replies of the user. */
  async #replay(actions: readonly AgentAction[], signal?: AbortSignal): Promise<void> {
    await this.#begin(signal);
    for (const action of actions) {
      const problem = await this.#gym.play(action, signal);
      this.#observe(problem ?? this.#gym.observation());
    }
  }

  async #begin(signal: AbortSignal | undefined): Promise<void> {
    this.#observe(await this.#gym.reset(signal));
    this.#opening = this.#gym.orchestrator.agentMessages;
  }

  /** 0 until the end. An episode has no reward if it or its scoring failed: that says nothing about the agent. */
  async #score(signal: AbortSignal | undefined): Promise<number | null> {
    const { crash } = this.#gym;
    if (crash !== null) this.#fail("the episode failed", crash);
    if (this.#unscored !== null) return null;
    try {
      const outcome = await this.#gym.evaluate(signal);
      if (outcome?.reward === null) this.#unscored = outcome.reason;
      return outcome === null ? 0 : outcome.reward;
    } catch (error) {
      this.#fail("scoring failed", error);
      return null;
    }
  }

  #fail(what: string, error: unknown): void {
    this.#unscored = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    this.#isModelFailure = isPlatformError(error, "model.failed");
  }

  #result(reward: number | null): ActionResult {
    const result = { observation: this.lastObservation, reward, done: this.isDone, step: this.steps };
    return this.#unscored === null ? result : { ...result, reward: null, unscored: this.#unscored };
  }

  #observe(observation: string): void {
    if (observation !== "") this.#lastObservation = observation;
  }

  #serialize<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#queue.then(work);
    this.#queue = mine.catch(() => {});
    return mine;
  }
}

function isMessageToUser(action: AgentAction): boolean {
  if (typeof action !== "string") return "say" in action && strip(action.say) !== "" && !action.say.includes(STOP_TOKEN);
  if (strip(action) === "") return false;
  const parsed = parseAction(action);
  return "text" in parsed && !parsed.text.includes(STOP_TOKEN);
}

function isCall(action: AgentAction): action is ToolCall {
  return typeof action === "object" && "name" in action;
}

function liveUser(domain: Domain, task: Task, { user }: Settings): Participant {
  if (user === null) {
    return { reply: () => Promise.reject(new Error("this episode has a user: set TAU2_USER_LLM to the model that plays it")) };
  }
  const tools = userTools(domain, task);
  const prompt = userPrompt(readPrompts(domain.data), printScenario(task.user_scenario), tools !== null);
  return new UserSimulator({ settings: user, prompt, tools: (tools ?? []).map((tool) => schemaOf(domain, "user", tool)) });
}
