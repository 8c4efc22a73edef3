import type { Suite } from "../suite.ts";
import { measureCalls } from "./calls.ts";
import { measureInstances } from "./instances.ts";
import { measureBesidePython } from "./python.ts";
import { measureStart } from "./start.ts";

/** The kit: cost of calls, starts and instances. */
export const kit: Suite = {
  name: "kit",
  async run(report) {
    await measureCalls(report);
    await measureBesidePython(report);
    await measureStart(report);
    await measureInstances(report);
  },
};
