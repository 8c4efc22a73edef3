import {
  type ChatMessage,
  digestAnswer,
  type EpisodeAbilities,
  type EpisodeChild,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  episodeAbilities,
  episodeChildren,
  episodePrompt,
  episodeReply,
  episodeStatus,
  type ForfeitReason,
  fillPath,
  forfeitAnswer,
  instanceRoutes,
  isPlatformError,
  noAbilities,
  type OracleAction,
  oracleAnswer,
  type RecordedExchange,
  type Reward,
  recordingAnswer,
} from "@aenv/contract";
import type { z } from "zod";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import type { RoleOptions } from "./call-options.ts";
import type { CallOptions, SandboxClient } from "./sandbox-client.ts";
import { toReward } from "./score.ts";

/** Opens the instance, and gives its client with the options that hold for one call. */
type OpenSandbox = (method: string, options: CallOptions) => Promise<{ readonly sandbox: SandboxClient; readonly options: CallOptions }>;

/**
 * What an environment says about its episode, beside tools and rewards. Every part is optional for its author; `abilities` says which
 * there are.
 */
export class EpisodeClient {
  readonly #envName: string;
  readonly #open: OpenSandbox;
  #abilities: EpisodeAbilities | null = null;

  constructor(envName: string, open: OpenSandbox) {
    this.#envName = envName;
    this.#open = open;
  }

  /** Which parts the environment defines: none for the original's servers. */
  async abilities(options: CallOptions = {}): Promise<EpisodeAbilities> {
    if (this.#abilities !== null) return this.#abilities;
    try {
      this.#abilities = await this.#ask("abilities", "list the parts of an episode", episodeAbilities, undefined, options);
    } catch (error) {
      if (!isPlatformError(error, "instance.unsupported")) throw error;
      this.#abilities = noAbilities;
    }
    return this.#abilities;
  }

  /** The messages that an agent begins with. */
  prompt(options: RoleOptions = {}): Promise<EpisodePrompt> {
    return this.#ask("prompt", "get the prompt", episodePrompt, undefined, options);
  }

  /** What the other side says when the agent speaks without calling a tool. Never sent twice. */
  reply(message: ChatMessage, { role, ...options }: RoleOptions = {}): Promise<EpisodeReply> {
    return this.#ask("reply", "get a reply", episodeReply, withRole({ message }, role), options);
  }

  /** Tells the environment what the agent writes beside tool calls, before they are made. */
  async hear(message: ChatMessage, { role, ...options }: RoleOptions = {}): Promise<void> {
    const { sandbox, options: own } = await this.#open("episode.hear", options);
    await sandbox.callEpisode(instanceRoutes.hear, "pass on the agent's words", withRole({ message }, role), own);
  }

  /** Whether the episode is over. It is also in the result of every tool call. */
  status(options: CallOptions = {}): Promise<EpisodeStatus> {
    return this.#ask("status", "get the status", episodeStatus, undefined, options);
  }

  /** The reward of the last step. */
  async stepReward({ role, ...options }: RoleOptions = {}): Promise<Reward> {
    const { sandbox, options: own } = await this.#open("episode.stepReward", options);
    const body = withRole({}, role);
    return toReward(await sandbox.callEpisode(instanceRoutes.stepReward, "get the step reward", body, own), this.#envName);
  }

  /**
   * Ends the play of a role whose agent exceeded its time or its invalid moves, or has left. True if the environment defines what the role
   * loses by it; else the role has no score.
   */
  async forfeit(role: string, reason: ForfeitReason, options: CallOptions = {}): Promise<boolean> {
    const { sandbox, options: own } = await this.#open("episode.forfeit", options);
    const route = { ...instanceRoutes.forfeit, path: fillPath(instanceRoutes.forfeit, { role }) };
    const doing = `end the play of the role '${role}'`;
    const data = await sandbox.callEpisode(route, doing, { reason }, own);
    return readAnswer(forfeitAnswer, data, `could not ${doing} of '${this.#envName}': the answer`).forfeited;
  }

  /** The digest of the state: equal for equal states. */
  async digest(options: CallOptions = {}): Promise<string> {
    return (await this.#ask("digest", "get the digest of the state", digestAnswer, undefined, options)).digest;
  }

  /** The actions that solve the task; null if the environment does not know them. */
  async oracle(options: RoleOptions = {}): Promise<readonly OracleAction[] | null> {
    return (await this.#ask("oracle", "get the solution", oracleAnswer, undefined, options)).actions;
  }

  /** The instances of other environments that belong to the episode, at all levels. */
  children(options: CallOptions = {}): Promise<EpisodeChild[]> {
    return this.#ask("children", "list the children", episodeChildren, undefined, options);
  }

  /** The calls of models by the environment's own code in this episode. */
  async recording(options: CallOptions = {}): Promise<readonly RecordedExchange[]> {
    return (await this.#ask("recording", "read the recording", recordingAnswer, undefined, options)).exchanges;
  }

  async #ask<S extends z.ZodType>(
    name: "abilities" | "prompt" | "reply" | "status" | "digest" | "oracle" | "children" | "recording",
    doing: string,
    schema: S,
    body: unknown,
    { role, ...options }: RoleOptions,
  ): Promise<z.infer<S>> {
    const { sandbox, options: own } = await this.#open(`episode.${name}`, options);
    const route = instanceRoutes[name];
    const path = route.method === "GET" ? withQuery(route.path, { role }) : route.path;
    const data = await sandbox.callEpisode({ ...route, path }, doing, body, own);
    return readAnswer(schema, data, `could not ${doing} of '${this.#envName}': the answer`);
  }
}

function withRole<T extends object>(body: T, role: string | undefined): T & { role?: string } {
  return role === undefined ? body : { ...body, role };
}
