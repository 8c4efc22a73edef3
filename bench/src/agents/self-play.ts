import { startPlatformServer } from "../platform/server.ts";
import { Child } from "../processes/child.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { Hands, Table } from "./hands-worker.ts";

/** How much is measured. */
export interface HandScale {
  readonly rounds: number;
  readonly hands: number;
}
export const HANDS: HandScale = { rounds: 5, hands: 500 };

/** Hands of Kuhn poker that an agent plays against itself, over the platform. */
export async function measureSelfPlay(report: Report, { rounds, hands }: HandScale = HANDS): Promise<void> {
  await using server = await startPlatformServer({ store: "memory:" });
  const { controlUrl, dataUrl } = server;
  const ref = await server.publish("games", "shared");
  await using worker = new Child(new URL("./hands-worker.ts", import.meta.url));
  await worker.query("open", { controlUrl, dataUrl, ref } satisfies Table);
  for (const concurrency of [1, 16]) {
    report.progress(`hands of Kuhn poker at concurrency ${concurrency}`);
    const perSecond: number[] = [];
    for (let round = 0; round < rounds; round++)
      perSecond.push((hands * 1_000) / (await worker.query<number>("play", { hands, concurrency } satisfies Hands)));
    report.add({ name: `self-play, hands of Kuhn poker, concurrency ${concurrency}`, value: median(perSecond), unit: "hands/s" });
  }
}
