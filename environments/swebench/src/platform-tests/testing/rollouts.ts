import { readTrajectories } from "@aenv/rollout";
import { aenv } from "aenvironment/cli-tests";
import type { World } from "./world.ts";

/** Plays tasks with `aenv rollout`. Returns the rewards in the order of tasks and samples; the whole outcome of an episode without one. */
export async function rollOut({ ref, platform, folder }: World, ...options: readonly string[]): Promise<unknown[]> {
  const run = ["-c", "3", "--max-unscored", "1", "--json"];
  const { code, stdout, stderr } = await aenv(["rollout", ref, "--system-url", platform.controlUrl, ...run, ...options], { cwd: folder });
  if (code !== 0) throw new Error(stderr);
  const rewards: unknown[] = [];
  for await (const { outcome } of readTrajectories(`${JSON.parse(stdout).folder}/trajectories.jsonl`))
    rewards.push(outcome.kind === "scored" ? outcome.reward : outcome);
  return rewards;
}
