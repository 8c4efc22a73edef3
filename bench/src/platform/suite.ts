import type { Suite } from "../suite.ts";
import { measureFirstResult } from "./first-result.ts";
import { measureGateway } from "./gateway.ts";
import { measureMany } from "./many.ts";
import { measureRecovery } from "./recovery.ts";

/** The platform: how soon instances are there, how many there can be, and what the way to them costs. */
export const platform: Suite = {
  name: "platform",
  async run(report) {
    await measureFirstResult(report);
    await measureMany(report);
    await measureRecovery(report);
    await measureGateway(report);
  },
};
