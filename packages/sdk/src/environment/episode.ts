import {
  type ChatMessage,
  digestAnswer,
  type EpisodeAbilities,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  episodeAbilities,
  episodePrompt,
  episodeReply,
  episodeStatus,
  instanceRoutes,
  isPlatformError,
  noAbilities,
  type OracleAction,
  oracleAnswer,
  type Reward,
} from "@aenv/contract";
import type { z } from "zod";
import { readAnswer } from "../http/read-answer.ts";
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
  prompt(options: CallOptions = {}): Promise<EpisodePrompt> {
    return this.#ask("prompt", "get the prompt", episodePrompt, undefined, options);
  }

  /** What the other side says when the agent speaks without calling a tool. Never sent twice. */
  reply(message: ChatMessage, options: CallOptions = {}): Promise<EpisodeReply> {
    return this.#ask("reply", "get a reply", episodeReply, { message }, options);
  }

  /** Tells the environment what the agent writes beside tool calls, before they are made. */
  async hear(message: ChatMessage, options: CallOptions = {}): Promise<void> {
    const { sandbox, options: own } = await this.#open("episode.hear", options);
    await sandbox.callEpisode(instanceRoutes.hear, "pass on the agent's words", { message }, own);
  }

  /** Whether the episode is over. It is also in the result of every tool call. */
  status(options: CallOptions = {}): Promise<EpisodeStatus> {
    return this.#ask("status", "get the status", episodeStatus, undefined, options);
  }

  /** The reward of the last step. */
  async stepReward(options: CallOptions = {}): Promise<Reward> {
    const { sandbox, options: own } = await this.#open("episode.stepReward", options);
    return toReward(await sandbox.callEpisode(instanceRoutes.stepReward, "get the step reward", {}, own), this.#envName);
  }

  /** The digest of the state: equal for equal states. */
  async digest(options: CallOptions = {}): Promise<string> {
    return (await this.#ask("digest", "get the digest of the state", digestAnswer, undefined, options)).digest;
  }

  /** The actions that solve the task; null if the environment does not know them. */
  async oracle(options: CallOptions = {}): Promise<readonly OracleAction[] | null> {
    return (await this.#ask("oracle", "get the solution", oracleAnswer, undefined, options)).actions;
  }

  async #ask<S extends z.ZodType>(
    name: "abilities" | "prompt" | "reply" | "status" | "digest" | "oracle",
    doing: string,
    schema: S,
    body: unknown,
    options: CallOptions,
  ): Promise<z.infer<S>> {
    const { sandbox, options: own } = await this.#open(`episode.${name}`, options);
    const data = await sandbox.callEpisode(instanceRoutes[name], doing, body, own);
    return readAnswer(schema, data, `could not ${doing} of '${this.#envName}': the answer`);
  }
}
