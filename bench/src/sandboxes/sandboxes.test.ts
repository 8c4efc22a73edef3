import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { describeNeeding } from "@aenv/testing";
import { expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { measureForks } from "./forks.ts";
import { BenchImage } from "./image.ts";
import { measureCommands, measureMany } from "./live.ts";

const SMALL = { rounds: 1, commands: 1, live: 2, files: 3, memoryMb: 1, forks: 2 };

describeNeeding("runsc", "the measured sandboxes", () => {
  it("run all parts of the suite, and leave nothing behind", { timeout: 120_000 }, async () => {
    const added: Measurement[] = [];
    const report = { add: (one: Measurement) => void added.push(one), skip: () => {}, progress: () => {} };
    {
      await using image = await BenchImage.build();
      await measureCommands(report, image, SMALL);
      await measureForks(report, image, SMALL);
      await measureMany(report, image, SMALL);
    }
    expect(added.length).toBeGreaterThanOrEqual(6);
    expect(added.filter(({ value, unit }) => unit === "ms" && !(value > 0))).toEqual([]);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("aenv-bench-image-"))).toEqual([]);
  });
});
