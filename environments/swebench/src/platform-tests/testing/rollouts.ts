import type { Trajectory } from "@aenv/contract";
import { readTrajectories } from "@aenv/rollout";
import { aenv } from "aenvironment/cli-tests";
import { attacks } from "./attacks.ts";
import type { World } from "./world.ts";

/** Plays tasks with `aenv rollout`. Returns the rewards in the order of tasks and samples; the whole outcome of an episode without one. */
export async function rollOut(world: World, ...options: readonly string[]): Promise<unknown[]> {
  return (await play(world, options)).map(({ outcome }) => rewardOf(outcome));
}

/** What `aenv replay` says about one trajectory of a run. */
export async function replayOne({ platform, folder }: World, run: string, trajectory: string): Promise<unknown> {
  const { stdout, stderr } = await aenv(["replay", run, trajectory, "--system-url", platform.controlUrl, "--json"], { cwd: folder });
  return stdout === "" ? stderr : JSON.parse(stdout);
}

/** The rewards of attacks by name, for an agent that plays them. */
export async function rollOutAttacks(world: World, ...options: readonly string[]): Promise<Record<string, unknown>> {
  const nameOf = ({ steps }: Trajectory) => attacks.find(({ script }) => script === steps.at(-1)?.call.arguments.command)?.name;
  return Object.fromEntries((await play(world, options)).map((one) => [nameOf(one), rewardOf(one.outcome)]));
}

async function play({ ref, platform, folder }: World, options: readonly string[]): Promise<Trajectory[]> {
  const run = ["-c", "3", "--max-unscored", "1", "--json"];
  const { code, stdout, stderr } = await aenv(["rollout", ref, "--system-url", platform.controlUrl, ...run, ...options], { cwd: folder });
  if (code !== 0) throw new Error(stderr);
  const played: Trajectory[] = [];
  for await (const one of readTrajectories(`${JSON.parse(stdout).folder}/trajectories.jsonl`)) played.push(one);
  return played;
}

function rewardOf(outcome: Trajectory["outcome"]): unknown {
  return outcome.kind === "scored" ? outcome.reward : outcome;
}
