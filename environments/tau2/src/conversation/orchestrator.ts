import { PyError, valueError } from "@aenv/benchmark";
import type { UserSimulator } from "@aenv/kit";
import type { Environment } from "../core/environment.ts";
import { isParticipant, isToolMessage, type Message, type ParticipantMessage, textOf } from "../core/messages/messages.ts";
import { setState } from "../core/state.ts";
import type { Task } from "../core/tasks.ts";
import { checkHistory, checkMessage, isUserStop, isVisibleToAgent, isVisibleToUser } from "./history.ts";

export type TerminationReason = "user_stop" | "agent_stop" | "max_steps" | "timeout" | "too_many_errors" | "agent_error" | "user_error";

/** An agent or a user. The history has the messages that the participant sent and received. */
export type Participant = UserSimulator<Message, ParticipantMessage>;

export interface OrchestratorOptions {
  readonly environment: Environment;
  readonly task: Task;
  /** Null if no model plays the user: then the agent's turn follows. */
  readonly user: Participant | null;
  /** Whether a message of the agent ends the conversation; never, if not given. */
  readonly isAgentStop?: (message: ParticipantMessage) => boolean;
  readonly maxSteps?: number;
  readonly maxErrors?: number;
  /** Ends the conversation when a message has both text and tool calls, or neither. */
  readonly checksCommunication?: boolean;
  readonly timeoutMs?: number;
  readonly now?: () => number;
}

type Role = "agent" | "user" | "env";

const GREETING: ParticipantMessage = { role: "assistant", content: "Hi! How can I help you today?", tool_calls: null };

/** A conversation of agent, user and environment, which take turns. It pauses when it is the agent's turn. */
export class Orchestrator {
  readonly environment: Environment;
  readonly #options: OrchestratorOptions;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #trajectory: Message[] = [];
  readonly #agentHistory: Message[] = [];
  readonly #userHistory: Message[] = [];
  #from: Role = "agent";
  #to: Role = "user";
  /** Messages that the next participant has not received yet; all results of one message are delivered together. */
  #incoming: readonly Message[] = [];
  #isOpening = false;
  #reason: TerminationReason | null = null;
  #stepCount = 0;
  #errorCount = 0;

  constructor(options: OrchestratorOptions) {
    this.environment = options.environment;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#startedAt = this.#now();
    this.#begin();
  }

  /** Why it ended; null while it runs. */
  get reason(): TerminationReason | null {
    return this.#reason;
  }

  get stepCount(): number {
    return this.#stepCount;
  }

  get errorCount(): number {
    return this.#errorCount;
  }

  /** All messages, in order. */
  get trajectory(): readonly Message[] {
    return this.#trajectory;
  }

  /** The messages that the agent sees; empty if it is not its turn. */
  get agentMessages(): readonly Message[] {
    return this.#to === "agent" ? [...this.#agentHistory, ...this.#incoming] : [];
  }

  /** The conversation as it is stored. Raises if the last message is a tool call without a result. */
  messages(): readonly Message[] {
    const [last] = this.#incoming;
    if (this.#to === "env" && this.#reason !== "agent_error" && this.#reason !== "user_error") {
      throw valueError(`Environment should not receive the last message. Last message: ${last === undefined ? "None" : last.role}`);
    }
    return this.#trajectory.map((message, turn_idx) => ({ ...message, turn_idx }));
  }

  /** Runs the whole conversation with an agent. */
  async run(agent: Participant, signal?: AbortSignal): Promise<TerminationReason> {
    for (;;) {
      await this.runUntilAgent(signal);
      if (this.#reason !== null) return this.#reason;
      this.give(await agent.reply(this.agentMessages, signal));
    }
  }

  /** Runs until it is the agent's turn or the conversation ends. */
  async runUntilAgent(signal?: AbortSignal): Promise<void> {
    while (this.#reason === null && this.#to !== "agent") {
      if (this.#to === "env") this.#answerCalls();
      else if (this.#options.user === null) {
        this.#to = "agent";
        this.#incoming = [];
        return;
      } else await this.#askUser(this.#options.user, signal);
      this.#endStep();
    }
  }

  /** Takes the agent's message. */
  give(message: ParticipantMessage): void {
    if (this.#reason !== null) throw valueError("Simulation is done");
    if (this.#to !== "agent") throw new Error("it is not the agent's turn: await runUntilAgent() first");
    const { isSolo } = this.environment;
    if (!this.#isOpening) checkMessage(message);
    const isStop = this.#isAgentStop(message);
    this.#agentHistory.push(...this.#incoming.filter(isRemembered), message);
    this.#send("agent", message.tool_calls === null ? "user" : "env", message);
    if (isStop) this.#reason = "agent_stop";
    else if (isSolo && message.tool_calls === null) this.#reason = "agent_error";
    if (!this.#isOpening) {
      this.#endStep();
      return;
    }
    // The first word of a solo agent is no step yet.
    this.#isOpening = false;
    if (isStop) this.#to = "user";
    this.#checkCommunication();
    this.environment.sync();
  }

  #begin(): void {
    const { environment, task } = this.#options;
    const history = (task.initial_state?.message_history ?? []).map((message) => ({ ...message, turn_idx: null }));
    setState(environment, task.initial_state, history);
    if (history.length > 0) this.#resume(history);
    else if (environment.isSolo) {
      this.#isOpening = true;
      this.#to = "agent";
      return;
    } else {
      this.#agentHistory.push(GREETING);
      this.#send("agent", "user", GREETING);
    }
    this.#checkCommunication();
    environment.sync();
  }

  /** Continues a task's own message history. */
  #resume(history: readonly Message[]): void {
    checkHistory(history);
    const last = history.at(-1);
    if (last === undefined) return;
    const before = history.slice(0, -1);
    const isAgentsOwn = last.role === "assistant" || (isToolMessage(last) && last.requestor === "user");
    this.#trajectory.push(...before);
    this.#agentHistory.push(...(isAgentsOwn ? history : before).filter(isVisibleToAgent));
    this.#userHistory.push(...(isAgentsOwn ? before : history).filter(isVisibleToUser));
    if (isParticipant(last)) {
      const sender = last.role === "assistant" ? "agent" : "user";
      this.#send(sender, last.tool_calls === null ? (sender === "agent" ? "user" : "agent") : "env", last);
      if (sender === "agent" ? this.#isAgentStop(last) : isUserStop(last)) this.#reason = `${sender}_stop`;
    } else if (isToolMessage(last)) this.#send("env", last.requestor === "user" ? "user" : "agent", last);
  }

  async #askUser(user: Participant, signal?: AbortSignal): Promise<void> {
    this.#userHistory.push(...this.#incoming.filter(isRemembered));
    // If the reply fails, a retry must not deliver the messages again.
    this.#incoming = [];
    const message = await user.reply(this.#userHistory, signal);
    checkMessage(message);
    if (isUserStop(message)) this.#reason = "user_stop";
    this.#userHistory.push(message);
    this.#send("user", message.tool_calls === null ? "agent" : "env", message);
  }

  #answerCalls(): void {
    const [message] = this.#incoming;
    if (message === undefined || !isParticipant(message) || message.tool_calls === null) {
      throw valueError("Agent or User should send tool call to environment");
    }
    const results = message.tool_calls.map((call) => this.environment.getResponse(call));
    this.#errorCount += results.filter(({ error }) => error).length;
    if (results.length === 0) throw new PyError("IndexError", "list index out of range");
    this.#send("env", this.#from, ...results);
  }

  #send(from: Role, to: Role, ...messages: readonly Message[]): void {
    this.#trajectory.push(...messages);
    this.#incoming = messages;
    this.#from = from;
    this.#to = to;
  }

  /** As in the reference, the limits are checked even after a stop, and take precedence over it. */
  #endStep(): void {
    this.#checkCommunication();
    this.#stepCount += 1;
    this.environment.sync();
    if (this.#to === "env") return;
    const { maxSteps = 100, maxErrors = 10, timeoutMs } = this.#options;
    if (this.#stepCount >= maxSteps) this.#reason = "max_steps";
    if (this.#errorCount >= maxErrors) this.#reason = "too_many_errors";
    if (this.#reason === null && timeoutMs !== undefined && this.#now() - this.#startedAt >= timeoutMs) this.#reason = "timeout";
  }

  #checkCommunication(): void {
    const [message] = this.#incoming;
    if (this.#options.checksCommunication !== true || this.#from === "env" || message === undefined || !isParticipant(message)) return;
    const hasText = textOf(message) !== null;
    const isSoloTalk = this.#from === "agent" && this.environment.isSolo && hasText && !this.#isAgentStop(message);
    if (hasText === (message.tool_calls !== null) || isSoloTalk) this.#reason = this.#from === "agent" ? "agent_error" : "user_error";
  }

  #isAgentStop(message: ParticipantMessage): boolean {
    return this.#options.isAgentStop?.(message) ?? false;
  }
}

/** Blank messages are not added to the histories. */
function isRemembered(message: Message): boolean {
  return !isParticipant(message) || message.tool_calls !== null || textOf(message) !== null;
}
