import { missing } from "@aenv/testing";
import type { Suite } from "../suite.ts";
import { measureParsers } from "./parsers.ts";
import { FULL_TASKS, measureTasks } from "./tasks.ts";

/** Benchmarks whose tasks are repositories with tests, or terminals. */
export const benchmarks: Suite = {
  name: "benchmarks",
  async run(report) {
    await measureParsers(report, { rounds: 60, length: 200_000 });
    const lacks = (["runc", "docker", "docker-registry", "go"] as const).map((name) => missing(name)).find((reason) => reason !== null);
    if (lacks == null) await measureTasks(report, FULL_TASKS);
    else report.skip("tasks on sandboxes", lacks);
  },
};
