import { PlatformError, type RolloutAgent, type RolloutModel, type RolloutPlayer, type RolloutRequest } from "@aenv/contract";
import type { ModelPolicy } from "@aenv/server/trainer-services";

/** Sampling settings that change the distribution which log-probabilities are of, and the values that leave it unchanged. */
const NEUTRAL: Readonly<Record<string, readonly unknown[]>> = {
  top_p: [1],
  top_k: [0, -1],
  min_p: [0],
  typical_p: [1],
  frequency_penalty: [0],
  presence_penalty: [0],
  repetition_penalty: [1],
};

/** Throws if the service cannot play what is asked. The schema has checked the form before. */
export function assertPlayable(request: RolloutRequest, policy: ModelPolicy): void {
  const { id, agent, model, players, rotate } = request;
  const refuse = (why: string) => new PlatformError("request.invalid", `rollout '${id}': ${why}`);
  if (players === undefined) {
    if (rotate === true) throw refuse("rotate is for players; give players");
    assertPlayer(request, policy, refuse);
    return;
  }
  // `openai` without a model is what a request without an agent is parsed to.
  if (model || agent.kind !== "openai") throw refuse("give either players, or agent and model");
  for (const [role, given] of Object.entries(players)) {
    for (const player of [given].flat()) assertPlayer(player, policy, (why) => refuse(`players.${role}: ${why}`));
  }
}

function assertPlayer({ agent, model }: RolloutPlayer, policy: ModelPolicy, refuse: (why: string) => PlatformError): void {
  const needsModel = agent.kind === "openai" || agent.kind === "anthropic";
  if (!model) {
    if (needsModel) throw refuse(`the agent '${agent.kind}' needs a model; give model.base_url`);
    return;
  }
  const api = apiOf(agent, model);
  if (agent.kind === "anthropic" && model.api === "responses")
    throw refuse("model.api is 'responses', but the agent 'anthropic' uses 'messages'");
  if (model.tokens === "service" && api !== "chat") {
    throw refuse(`model.tokens is 'service', but the API '${api}' returns no token ids; use 'chat', or tokens 'trainer'`);
  }
  if (model.tokens === "service" && !model.allow_truncated_sampling) assertUnbiased(model, refuse);
  const problem = policy.urlProblem(new URL(model.base_url));
  if (problem !== null) throw refuse(`model.base_url ${problem}`);
}

export function apiOf(agent: RolloutAgent, { api }: RolloutModel): RolloutModel["api"] {
  return agent.kind === "anthropic" ? "messages" : api;
}

function assertUnbiased({ sampling, extra_body }: RolloutModel, refuse: (why: string) => PlatformError): void {
  for (const [name, value] of [...Object.entries(sampling), ...Object.entries(extra_body)]) {
    const neutral = NEUTRAL[name];
    if (neutral === undefined || value === null || value === undefined || neutral.includes(value)) continue;
    throw refuse(
      `sampling has ${name} = ${JSON.stringify(value)}, which biases the log-probabilities that the service records; use ${neutral[0]}, or set model.allow_truncated_sampling`,
    );
  }
}
