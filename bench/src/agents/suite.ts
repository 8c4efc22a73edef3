import type { Suite } from "../suite.ts";
import { measureA2a } from "./a2a.ts";
import { measureSelfPlay } from "./self-play.ts";
import { measureTrees } from "./trees.ts";

/** Agents: calls over A2A, trees of instances, games of several players. */
export const agents: Suite = {
  name: "agents",
  async run(report) {
    await measureA2a(report);
    await measureTrees(report);
    await measureSelfPlay(report);
  },
};
