import { parseRewardJson } from "./reward-json.ts";
import { parseRewardText } from "./reward-text.ts";

/** The content of the verifier's reward files; null if a file does not exist. */
export interface RewardFiles {
  readonly json: string | null;
  readonly text: string | null;
}

export type RewardErrorType = "RewardFileNotFoundError" | "RewardFileEmptyError" | "VerifierOutputParseError";

export interface Rewards {
  readonly rewards: Readonly<Record<string, number>>;
  /** The keys whose numbers were written as whole numbers: Python prints `1`, not `1.0`. */
  readonly integers: readonly string[];
}

export type RewardOutcome =
  | (Rewards & { readonly ok: true })
  | { readonly ok: false; readonly error: RewardErrorType; readonly message: string };

/** Reads the rewards of a verification. `reward.json` comes first; an empty file is an error, not a reason to read the other. */
export function readRewards(files: RewardFiles, options: { readonly lenient?: boolean } = {}): RewardOutcome {
  if (files.json === null) return files.text === null ? notFound() : readText(files.text);
  if (files.json === "") return failed("RewardFileEmptyError", "reward.json is empty");
  const parsed = parseRewardJson(files.json, options.lenient);
  if (!parsed.ok) return failed("VerifierOutputParseError", `reward.json cannot be read: ${parsed.why}`);
  const { rewards, integers } = parsed;
  // Without the key `reward`, the other file may still have it.
  const added = !Object.hasOwn(rewards, "reward") && files.text !== null ? parseRewardText(files.text) : null;
  return { ok: true, rewards: { ...rewards, ...(added !== null && { reward: added }) }, integers };
}

/** The one number of a trial's rewards, as Harbor chooses it: the key `reward`, or else the first one; null if there is none. */
export function scalarReward(rewards: Readonly<Record<string, number>> | null): number | null {
  if (rewards === null) return null;
  if (Object.hasOwn(rewards, "reward")) return rewards.reward ?? null;
  return Object.values(rewards)[0] ?? null;
}

function readText(content: string): RewardOutcome {
  if (content === "") return failed("RewardFileEmptyError", "reward.txt is empty");
  const reward = parseRewardText(content);
  if (reward === null)
    return failed("VerifierOutputParseError", `reward.txt is not one finite number: ${JSON.stringify(content.slice(0, 80))}`);
  return { ok: true, rewards: { reward }, integers: [] };
}

function notFound(): RewardOutcome {
  return failed("RewardFileNotFoundError", "the test script wrote neither /logs/verifier/reward.json nor reward.txt");
}

function failed(error: RewardErrorType, message: string): RewardOutcome {
  return { ok: false, error, message };
}
