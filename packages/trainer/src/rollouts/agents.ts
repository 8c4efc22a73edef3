import type { RolloutAgent, RolloutModel, RolloutPlayer, RolloutRequest } from "@aenv/contract";
import {
  ModelError,
  type ModelHttp,
  modelAgent,
  noopAgent,
  oracleAgent,
  type Players,
  type RolePlayer,
  randomAgent,
  scriptedAgent,
  type TurnAgent,
} from "@aenv/rollout";
import type { ModelPolicy } from "@aenv/server/trainer-services";
import { apiOf } from "./admission.ts";
import { TokenSupports } from "./token-supports.ts";

/** Makes the agents of rollouts. */
export class RolloutAgents {
  readonly #http: ModelHttp;
  readonly #policy: ModelPolicy;
  readonly #tokenSupports = new TokenSupports();

  constructor(http: ModelHttp, policy: ModelPolicy) {
    this.#http = http;
    this.#policy = policy;
  }

  /** The players of a request; absent if it has one agent. */
  playersOf({ players, rotate: rotates = false }: RolloutRequest, owner: string): Players | undefined {
    if (players === undefined) return undefined;
    const roles = Object.entries(players).map(([role, given]): [string, RolePlayer[]] => {
      const all = [given].flat();
      return [
        role,
        all.map((one) => ({
          agent: this.agentOf(one, owner),
          model: one.model?.name ?? null,
          trainable: one.trainable ?? (all.length === 1 && Boolean(one.model)),
        })),
      ];
    });
    return { roles: Object.fromEntries(roles), rotates };
  }

  agentOf({ agent, model }: RolloutPlayer, owner: string): TurnAgent {
    switch (agent.kind) {
      case "oracle":
        return oracleAgent();
      case "noop":
        return noopAgent();
      case "random":
        return randomAgent(agent.options);
      case "scripted":
        return scriptedAgent(agent.options.actions);
      case "openai":
      case "anthropic":
        if (!model) throw new TypeError(`the agent '${agent.kind}' has no model`);
        return this.#modelAgent(agent, model, owner);
    }
  }

  #modelAgent(kind: RolloutAgent, model: RolloutModel, owner: string): TurnAgent {
    const { base_url: baseUrl, api_key: apiKey, name, sampling, extra_body: extraBody, headers, tokens } = model;
    const wantsTokens = tokens !== "trainer";
    const agent = modelAgent(
      {
        api: apiOf(kind, model),
        baseUrl,
        apiKey,
        name,
        sampling,
        extraBody,
        headers,
        wantsTokens,
        ...(tokens === "auto" && { tokenSupport: this.#tokenSupports.of(owner, baseUrl) }),
        sendsSeed: false,
      },
      this.#http,
    );
    return {
      ...agent,
      begin: (start) => {
        // The server that plays a rollout may have another policy than the one that accepted it.
        const problem = this.#policy.urlProblem(new URL(baseUrl));
        if (problem !== null) throw new ModelError(`the model's base_url ${problem}`, { retryable: false });
        return agent.begin(start);
      },
    };
  }
}
