import { startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { median, quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";

const FORKS = 8;

/** How much is measured. */
export interface TreeScale {
  readonly rounds: number;
  readonly creates: number;
}
export const TREES: TreeScale = { rounds: 12, creates: 50 };

/** An environment with two children, beside the same environment alone. All of them are packed. */
export async function measureTrees(report: Report, { rounds, creates }: TreeScale = TREES): Promise<void> {
  report.progress("trees of three instances");
  await using server = await startPlatformServer();
  await using trainer = await Trainer.open(server);
  const alone = await server.publish("ledger", "shared");
  const tree = await server.publish("trio", "shared", { uses: ["left", "right"].map((name) => ({ name, env: alone })) });
  const first = (ref: string) => trainer.query("firstResults", { ref, count: creates, isPaced: false });
  const starts = { tree: () => first(tree), alone: () => first(alone) };
  for (const warmUp of Object.values(starts)) await warmUp();
  const times = await takeTurns(rounds, starts);
  report.add({
    name: "create to first tool result, a tree of three packed instances, p50",
    value: quantile(times.tree.flat(), 0.5),
    unit: "ms",
    beside: { what: "one packed slot", value: quantile(times.alone.flat(), 0.5) },
    aim: { of: "ratio", is: "at most", limit: 3 },
  });

  report.progress(`fork x ${FORKS} of a tree`);
  const forks = { tree: await forksOf(trainer, tree), alone: await forksOf(trainer, alone) };
  for (const warmUp of Object.values(forks)) await warmUp();
  const forkMs = await takeTurns(rounds, forks);
  report.add({
    name: `fork x ${FORKS} of a tree of three packed instances, in all`,
    value: median(forkMs.tree),
    unit: "ms",
    beside: { what: `fork x ${FORKS} of one`, value: median(forkMs.alone) },
  });
  await assertEmpty(trainer);
}

async function forksOf(trainer: Trainer, ref: string): Promise<() => Promise<number>> {
  const { ids } = await trainer.query("create", { ref, count: 1 });
  return async () => {
    const copies = await trainer.query("fork", { id: ids[0] as string, count: FORKS });
    await trainer.query("end", { ids: copies.ids });
    return copies.ms;
  };
}

/** The two prepared ones, of which one has two children: any more would be left of a tree that has ended. */
async function assertEmpty(trainer: Trainer): Promise<void> {
  const live = await trainer.query("live", undefined);
  if (live !== 4) throw new Error(`${live} instances are live, but only the 4 that were forked were not ended`);
}
