import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { originalLacks, PYTHON, startOriginal } from "../original/original.ts";
import type { PlatformServer } from "../platform/server.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { Runner, type Spent } from "./runner.ts";
import type { Scale } from "./scale.ts";

const CALLS = 10;
/** The concurrency at which the original's SDK is compared. */
const COMPARED = 64;

/** Episodes per second and the runner's CPU, beside the bare HTTP requests, the tools alone, and the original's SDK. */
export async function measureSpeed(report: Report, server: PlatformServer, ref: string, scale: Scale): Promise<void> {
  await using runner = await Runner.open(server, ref);
  report.progress("the tools alone");
  const direct = await runner.measure("direct", { episodes: scale.directEpisodes });
  const limit = { what: "the same tools called as functions", value: rate(direct, scale.directEpisodes) };
  for (const [lanes, episodes] of Object.entries(scale.episodes)) {
    const concurrency = Number(lanes);
    report.progress(`episodes at concurrency ${concurrency}`);
    const contenders = {
      requests: () => runner.measure("requests", { episodes, concurrency }),
      play: () => runner.measure("play", { episodes, concurrency }),
    };
    // Compilation, opening connections and starting instances are not measured. V8 still compiles during a first round.
    for (let time = 0; time < scale.warmUps; time++) for (const warmUp of Object.values(contenders)) await warmUp();
    const samples = await takeTurns(scale.rounds, contenders);
    const play = median(samples.play.map((one) => rate(one, episodes)));
    const name = `episodes of ${CALLS} calls, concurrency ${concurrency}`;
    report.add({ name, value: play, unit: "episodes/s", beside: limit });
    report.add({
      name: `${name}, and their requests`,
      value: play,
      unit: "episodes/s",
      beside: { what: "their HTTP requests alone", value: median(samples.requests.map((one) => rate(one, episodes))) },
    });
    const cpu = { play: median(cpuMs(samples.play, episodes)), requests: median(cpuMs(samples.requests, episodes)) };
    report.add({
      name: `CPU of the runner per episode, concurrency ${concurrency}`,
      value: cpu.play,
      unit: "ms",
      beside: { what: "their HTTP requests alone", value: cpu.requests },
    });
    report.add({
      name: `CPU of the runner per episode over its HTTP requests, concurrency ${concurrency}`,
      value: cpu.play - cpu.requests,
      unit: "ms",
      aim: { of: "value", is: "at most", limit: 1 },
    });
    if (concurrency !== COMPARED) continue;
    const journal = await runner.measure("journal", { concurrency });
    report.add({
      name: `share of the time that writing the trajectories takes, concurrency ${concurrency}`,
      value: (100 * journal.ms) / median(samples.play.map(({ ms }) => ms)),
      unit: "%",
      aim: { of: "value", is: "at most", limit: 5 },
    });
    await compareWithOriginal(report, play, scale);
  }
}

/** The original's SDK plays the same episodes against the original's server. */
async function compareWithOriginal(report: Report, ours: number, { pythonEpisodes }: Scale): Promise<void> {
  const lacks = originalLacks();
  if (lacks !== null) return report.skip("beside the original Python SDK", lacks);
  report.progress("the original Python SDK");
  await using original = await startOriginal({ isForItsClients: true });
  const script = fileURLToPath(new URL("../original/episodes.py", import.meta.url));
  const env = { ...process.env, DUMMY_INSTANCE_IP: `http://${new URL(original.url).hostname}`, PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await promisify(execFile)(PYTHON, [script, pythonEpisodes, CALLS, COMPARED].map(String), { env });
  report.add({
    name: `episodes of ${CALLS} calls, concurrency ${COMPARED}, and the original`,
    value: ours,
    unit: "episodes/s",
    beside: { what: "the original Python SDK and server", value: pythonEpisodes / Number(stdout) },
    aim: { of: "ratio", is: "at least", limit: 10 },
  });
}

function rate({ ms }: Spent, episodes: number): number {
  return (episodes * 1_000) / ms;
}

function cpuMs(samples: readonly Spent[], episodes: number): number[] {
  return samples.map(({ cpuUs }) => cpuUs / 1_000 / episodes);
}
