import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { Scale } from "./scale.ts";
import { World } from "./world.ts";

/** The hash of the database after a write, compared with a hash of the whole dump. Episodes are compared by this hash. */
export async function measureHashing(report: Report, { writes }: Scale): Promise<void> {
  for (const name of ["airline", "retail"]) {
    report.progress(`hashes of ${name} after a write`);
    await using world = await World.open(name);
    const { incrementalMs, fullMs, different } = await world.query("hashes", { writes });
    if (different > 0) throw new Error(`${different} hashes of ${name} differ from those of the whole dump`);
    report.add({
      name: `hash of ${name} after a golden action that writes`,
      value: median(incrementalMs),
      unit: "ms",
      beside: { what: "a full dump and its sha256", value: median(fullMs) },
      aim: { of: "ratio", is: "at most", limit: 0.1 },
    });
  }
}
