import { isObject, problemsOf, type Reward, type RoleRewards, reward, roleRewards } from "@aenv/contract";
import { EnvironmentError } from "../errors/errors.ts";

// Made once: to make a schema takes a hundred times as long as to use it.
const withoutWeights = reward.omit({ weights: true });

/**
 * Normalises the usual formats of a reward: a number, a boolean,
 * `{reward, components}`, `{reward}` or `{score}`. Anything else is an error, because a wrong 0 would corrupt training.
 */
export function toReward(data: unknown, envName: string): Reward {
  if (typeof data === "boolean") return { reward: data ? 1 : 0, components: {} };
  const total = isObject(data) ? (data.reward ?? data.score) : data;
  const { components, weights } = isObject(data) ? data : {};
  const parsed = withoutWeights.safeParse({ reward: total, components: components ?? {} });
  // An author's own field 'weights' of another form does not make the reward invalid.
  const known = reward.shape.weights.safeParse(weights ?? undefined).data;
  if (parsed.success) return { ...parsed.data, ...(known !== undefined && { weights: known }) };
  const shown = JSON.stringify(data) ?? "nothing";
  throw new EnvironmentError(
    `the reward of '${envName}' is ${shown.length > 100 ? `${shown.slice(0, 97)}...` : shown}; it must be a number, a boolean, {reward, components}, {reward} or {score}`,
    { code: "reward.failed", envName },
  );
}

/** The rewards of the roles of an environment. It is an error if the environment gives none: it has no roles then. */
export function toRoleRewards(data: unknown, envName: string): RoleRewards {
  const parsed = roleRewards.safeParse(data);
  if (parsed.success) return parsed.data;
  const problem = isObject(data) && "roles" in data ? problemsOf(parsed.error, "the reward") : "it has no rewards of roles";
  throw new EnvironmentError(`the reward of '${envName}' is not that of an environment with roles: ${problem}`, {
    code: "reward.failed",
    envName,
  });
}
