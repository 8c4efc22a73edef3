import type { RolloutModel, RolloutRequest } from "@aenv/contract";
import {
  ModelError,
  type ModelHttp,
  modelAgent,
  noopAgent,
  oracleAgent,
  randomAgent,
  scriptedAgent,
  type TokenSupport,
  type TurnAgent,
} from "@aenv/rollout";
import { apiOf } from "./admission.ts";
import type { ModelPolicy } from "./model-policy.ts";

const MAX_ENDPOINTS = 10_000;

/** Makes the agents of rollouts. Which endpoints refuse requests for tokens is remembered for all of them. */
export class RolloutAgents {
  readonly #http: ModelHttp;
  readonly #policy: ModelPolicy;
  readonly #tokenSupport = new Map<string, TokenSupport>();

  constructor(http: ModelHttp, policy: ModelPolicy) {
    this.#http = http;
    this.#policy = policy;
  }

  agentOf(request: RolloutRequest): TurnAgent {
    const { agent, model } = request;
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
        if (!model) throw new TypeError(`rollout '${request.id}' has no model`);
        return this.#modelAgent(request, model);
    }
  }

  #modelAgent(request: RolloutRequest, model: RolloutModel): TurnAgent {
    const { base_url: baseUrl, api_key: apiKey, name, sampling, extra_body: extraBody, headers, tokens } = model;
    const wantsTokens = tokens !== "trainer";
    const agent = modelAgent(
      {
        api: apiOf(request, model),
        baseUrl,
        apiKey,
        name,
        sampling,
        extraBody,
        headers,
        wantsTokens,
        ...(tokens === "auto" && { tokenSupport: this.#supportOf(baseUrl) }),
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

  #supportOf(baseUrl: string): TokenSupport {
    const known = this.#tokenSupport.get(baseUrl);
    if (known !== undefined) return known;
    if (this.#tokenSupport.size >= MAX_ENDPOINTS) this.#tokenSupport.clear();
    const support: TokenSupport = { isRefused: false };
    this.#tokenSupport.set(baseUrl, support);
    return support;
  }
}
