import type { RolloutModel, RolloutRequest } from "@aenv/contract";
import { ModelError, type ModelHttp, modelAgent, noopAgent, oracleAgent, randomAgent, scriptedAgent, type TurnAgent } from "@aenv/rollout";
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

  agentOf(request: RolloutRequest, owner: string): TurnAgent {
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
        return this.#modelAgent(request, model, owner);
    }
  }

  #modelAgent(request: RolloutRequest, model: RolloutModel, owner: string): TurnAgent {
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
