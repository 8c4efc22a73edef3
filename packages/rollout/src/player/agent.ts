import type { ChatMessage, Conversation, OracleAction, ToolDescriptor, Turn } from "@aenv/contract";
import type { EpisodeSandbox } from "./instance.ts";

/** A message that an agent writes, and the model's turn behind it if there was one. */
export interface AgentMessage {
  readonly message: ChatMessage;
  readonly turn?: Omit<Turn, "node_id" | "message" | "started_ms" | "duration_ms"> | undefined;
  /** What the model was shown, if that is not the conversation so far. The conversation goes on from there. */
  readonly seen?: Conversation | undefined;
}

/** What an agent is given when an episode begins. Rewards and hidden parts of the task are not among it. */
export interface AgentStart {
  readonly task: { readonly id: string | null; readonly instruction: string | null };
  readonly tools: readonly ToolDescriptor[];
  readonly seed: number;
  /** The role that it plays; absent in an environment without roles. */
  readonly role?: string;
  /** The environment's known solution; only the agents that play it ask for it. */
  readonly oracle: () => Promise<readonly OracleAction[] | null>;
}

export interface TurnOptions {
  readonly signal: AbortSignal;
  /** Tokens that the model may still write in this episode. */
  readonly maxTokens?: number | undefined;
  /** Time that passes because the model's endpoint is busy or has failed. The agent's time limit does not count it. */
  readonly onDelay?: ((ms: number) => void) | undefined;
}

/** One player of one episode. It is given the conversation so far and writes the next message; null ends the episode. */
export interface Player {
  next(messages: readonly ChatMessage[], options: TurnOptions): Promise<AgentMessage | null>;
  /** A player that goes on from the same point, for a fork. What it draws from now on is drawn with this seed. */
  copy(seed: number): Player;
}

/** Plays episodes message by message. It plays many at the same time, so what belongs to one episode is in its player. */
export interface TurnAgent {
  readonly name: string;
  /** What a trajectory says of it: settings that change what it does, never a secret. */
  readonly settings: Readonly<Record<string, unknown>>;
  begin(start: AgentStart): Player | Promise<Player>;
}

/** The sandbox of an episode, for programs that run in it. */
export interface ProgramPlace {
  /** Null if the instance is not on a platform. */
  readonly sandbox: EpisodeSandbox | null;
  /** What made the sandbox, such as `oci`; null if that is not known. */
  readonly engine: string | null;
  /** Whether the sandbox is more than processes of its machine; null if that is not known. */
  readonly isIsolated: boolean | null;
  readonly signal: AbortSignal;
}

/** Where a program that plays an episode finds what it needs. */
export interface ProgramStart extends Omit<AgentStart, "oracle">, ProgramPlace {
  /** The messages that an agent begins with. */
  readonly messages: readonly ChatMessage[];
  /** The MCP address of the tools. */
  readonly agentUrl: string;
  /** The model's addresses; null if the run has no model. */
  readonly model: { readonly openaiUrl: string; readonly anthropicUrl: string; readonly apiKey: string; readonly name: string } | null;
  /** Keeps facts about the program in the trajectory, in `metadata.agent_program`: its exit code, the end of its output. */
  report(facts: Readonly<Record<string, unknown>>): void;
}

/** A program of any kind that plays a whole episode by itself: it calls the tools over MCP and, if it likes, the model. */
export interface ProgramAgent {
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Called before the program's time begins: installs what it needs. */
  prepare?(place: ProgramPlace): Promise<void>;
  /** Resolves when the program has ended; its last words, if it has any. */
  run(start: ProgramStart): Promise<{ readonly text: string | null }>;
}

export type Agent = TurnAgent | ProgramAgent;

export function isProgram(agent: Agent): agent is ProgramAgent {
  return "run" in agent;
}
