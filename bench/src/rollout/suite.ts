import { startPlatformServer } from "../platform/server.ts";
import type { Suite } from "../suite.ts";
import { measureMemory } from "./memory.ts";
import { FULL } from "./scale.ts";
import { measureSpeed } from "./speed.ts";

/** Rollouts: whole episodes of ten tool calls with an agent that answers at once, on a packed environment behind a server. */
export const rollout: Suite = {
  name: "rollout",
  async run(report) {
    await using server = await startPlatformServer({ store: "memory:" });
    const ref = await server.publish("ledger", "shared");
    await measureSpeed(report, server, ref, FULL);
    await measureMemory(report, server, ref, FULL);
  },
};
