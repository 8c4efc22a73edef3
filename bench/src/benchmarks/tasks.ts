import { join } from "node:path";
import { startWorld } from "@aenv/terminal-bench/example-world";
import { startDocker } from "@aenv/testing";
import { Environment } from "aenvironment";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { DockerByHand } from "./docker-by-hand.ts";

export interface TasksScale {
  /** Tasks of one measurement; the two example tasks are played again and again. */
  readonly tasks: number;
  readonly rounds: number;
  readonly atOnce: number;
}

export const FULL_TASKS: TasksScale = { tasks: 24, rounds: 3, atOnce: 100 };

/** Tasks that a single container without a network can play, as they are. */
const PLAYED = ["hello-file", "reward-json"];
const LANES = 4;
const HOUR_MS = 3_600_000;

/** Tasks of a terminal benchmark with their own solutions, on sandboxes of the oci engine and with `docker` by hand. */
export async function measureTasks(report: Report, { tasks, rounds, atOnce }: TasksScale): Promise<void> {
  report.progress("tasks of a terminal benchmark");
  await using world = await startWorld({ engine: "oci" });
  await using daemon = await startDocker();
  using docker = await DockerByHand.open(daemon.socket, `${world.examples.prefix}aenv-debian:1`, world.registry.authFile);
  const chosen = PLAYED.flatMap((id) => ["--task", id]);
  let runs = 0;
  const play = async (samples: number, lanes: number, ids = chosen) => {
    const options = ["-n", String(samples), "-c", String(lanes), "--run", `bench-${runs++}`, ...ids];
    const rewards = Object.values(await world.rewards("oracle", options)).flat();
    const wrong = rewards.find((reward) => reward !== 1);
    if (wrong !== undefined) throw new Error(`an oracle got ${JSON.stringify(wrong)}`);
    return rewards.length;
  };
  const timed = async (work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    return performance.now() - start;
  };
  const samples = Math.ceil(tasks / PLAYED.length);
  const byHand = async () => {
    const left = Array.from({ length: samples }, () => PLAYED).flat();
    const lane = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await docker.play(join(world.examples.dataDir, "terminal-bench", id));
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  };
  await play(1, LANES);
  const contenders = { oci: () => timed(() => play(samples, LANES)), docker: () => timed(byHand) };
  const times = await takeTurns(rounds, contenders);
  const perHour = (ms: readonly number[]) => (HOUR_MS * samples * PLAYED.length) / quantile(ms, 0.5);
  report.add({
    name: `tasks with their solutions, ${LANES} at a time, engine oci, tests in a second, new sandbox`,
    value: perHour(times.oci),
    unit: "tasks/h",
    beside: { what: "docker run, exec and cp by hand, tests in the same container", value: perHour(times.docker) },
  });

  await using env = await Environment.create(world.ref, {
    systemUrl: world.platform.controlUrl,
    environmentVariables: world.variables,
  });
  const first = async () => {
    const ms = await timed(async () => {
      await env.reset({ task: PLAYED[0] as string });
      await env.callTool("bash", { command: "true" });
    });
    return ms;
  };
  const starts = { oci: first, docker: () => docker.firstCommand() };
  await takeTurns(1, starts);
  const firsts = await takeTurns(rounds * 4, starts);
  report.add({
    name: "reset of a task to the result of its first command, engine oci, p50",
    value: quantile(firsts.oci, 0.5),
    unit: "ms",
    beside: { what: "docker run and exec", value: quantile(firsts.docker, 0.5) },
  });

  report.progress(`${atOnce} tasks at once`);
  let played = 0;
  const ms = await timed(async () => {
    played = await play(atOnce, atOnce, ["--task", PLAYED[0] as string]);
  });
  report.add({ name: `${atOnce} tasks at once, all solved, until the last is scored`, value: ms / 1_000, unit: "s" });
  if (played !== atOnce) throw new Error(`${played} of ${atOnce} tasks were played`);
}
