import { setTimeout as pause } from "node:timers/promises";
import type { Choices } from "./load.ts";
import { startServerProcess } from "./server-process.ts";
import type { World } from "./world.ts";

/** CI runs five, and the nightly run a hundred. `AENV_CRASH_SEEDS=1000` for a long run; `AENV_CRASH_FIRST` is the first seed. */
const FIRST = Number(process.env.AENV_CRASH_FIRST ?? 1);
export const seedsOr = (otherwise: number): number => Number(process.env.AENV_CRASH_SEEDS ?? otherwise);

/** Plays one run for each seed. An error names its seed. */
export async function playSeeds(count: number, world: World, play: (seed: number) => Promise<void>): Promise<void> {
  for (let seed = FIRST; seed < FIRST + count; seed++) {
    await play(seed).catch((cause: unknown) => {
      throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause });
    });
  }
  console.log(`${count} runs: ${JSON.stringify(world.counts)}`);
}

/** Kills servers while they recover, none or several of them. */
export async function killRecovering(home: string, flags: Readonly<Record<string, unknown>>, world: World, random: Choices): Promise<void> {
  while (random.isOneIn(4)) {
    const starting = startServerProcess(home, { flags, moments: random.below(2) * (1 + random.below(80)) });
    await Promise.race([starting.ready.catch(() => {}), pause(random.next() * 1_000)]);
    await starting.kill();
    world.counts.kills++;
  }
}
