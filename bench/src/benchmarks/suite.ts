import type { Suite } from "../suite.ts";
import { measureParsers } from "./parsers.ts";

/** Benchmarks whose tasks are repositories with tests. */
export const benchmarks: Suite = {
  name: "benchmarks",
  async run(report) {
    await measureParsers(report, { rounds: 20, length: 200_000 });
  },
};
