import type { PlatformServer } from "../platform/server.ts";
import type { Report } from "../suite.ts";
import { Runner } from "./runner.ts";
import type { Scale } from "./scale.ts";

const CONCURRENCY = 64;
const MEBIBYTE = 2 ** 20;
/** A small heap: V8 lets garbage pile up as long as it has room, and its peak would say more about the room than about the runner. */
const SMALL_HEAP = ["--max-semi-space-size=4", "--max-old-space-size=64"];

/** The peak memory of a runner's process does not depend on the number of episodes. */
export async function measureMemory(report: Report, server: PlatformServer, ref: string, scale: Scale): Promise<void> {
  const { fewEpisodes, manyEpisodes } = scale;
  const peakMb = async (episodes: number) => {
    report.progress(`the memory of ${episodes} episodes`);
    await using runner = await Runner.open(server, ref, SMALL_HEAP);
    await runner.measure("play", { episodes, concurrency: CONCURRENCY });
    return (await runner.peakBytes()) / MEBIBYTE;
  };
  const few = await peakMb(fewEpisodes);
  report.add({
    name: `peak memory of the runner in a small heap, ${manyEpisodes} episodes`,
    value: await peakMb(manyEpisodes),
    unit: "MB",
    beside: { what: `${fewEpisodes} episodes`, value: few },
    aim: { of: "ratio", is: "at most", limit: 1.1 },
  });
}
