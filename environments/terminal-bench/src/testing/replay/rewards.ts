import { PyError, parseFloatText } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { map } from "../../fields/containers.ts";
import { InvalidValue, optional } from "../../fields/field.ts";
import { float } from "../../fields/scalars.ts";
import { readJson } from "../../python/json.ts";
import { readRewards } from "../../verifier/rewards.ts";
import { isVector, type Vector, vectorAt } from "./vectors.ts";

/** Compares with the reference, and then with our rules on top of its answer: stricter values, one exception for all of them. */
export function replayReward(vector: Vector, tally: Tally): void {
  const file = textAt(vector, "file") === "reward.json" ? "reward.json" : "reward.txt";
  const content = textAt(vector, "content");
  const upstream = vectorAt(vector, "upstream");
  tally.compare("reward", `${file} ${JSON.stringify(content)}`, upstreamRewards(file, content), upstream);
  const outcome = readRewards(file === "reward.json" ? { json: content, text: null } : { json: null, text: content });
  const got = outcome.ok ? { rewards: outcome.rewards } : { error: outcome.error };
  tally.compare("reward, our rules", `${file} ${JSON.stringify(content)}`, got, withOurRules(file, content, upstream));
}

/** What the reference answers for one file: also numbers in strings, booleans, `NaN`, and null as no rewards. */
function upstreamRewards(file: "reward.json" | "reward.txt", content: string): Vector {
  if (content === "") return { error: "RewardFileEmptyError" };
  if (file === "reward.txt") {
    const number = parseFloatText(content);
    return number === null ? { error: "VerifierOutputParseError" } : { rewards: { reward: number } };
  }
  try {
    return { rewards: optional(map(float)).parse(readJson(content), "") };
  } catch (error) {
    if (error instanceof PyError) return { error: "VerifierOutputParseError" };
    if (error instanceof InvalidValue) return { error: "ValidationError" };
    throw error;
  }
}

function withOurRules(file: string, content: string, upstream: Vector): Vector {
  const rejected = { error: "VerifierOutputParseError" };
  if (typeof upstream.error === "string") return upstream.error === "ValidationError" ? rejected : upstream;
  if (!isVector(upstream.rewards)) return rejected;
  // Non-finite numbers are texts in the vectors.
  if (Object.values(upstream.rewards).some((value) => typeof value !== "number")) return rejected;
  if (file === "reward.txt") return /^[ \t\r\n\v\f\d.eE+-]*$/.test(content) ? upstream : rejected;
  const given: unknown = JSON.parse(content);
  return isVector(given) && Object.values(given).every((value) => typeof value === "number") ? upstream : rejected;
}
