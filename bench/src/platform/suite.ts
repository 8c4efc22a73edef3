import type { Suite } from "../suite.ts";
import { measureFirstResult } from "./first-result.ts";
import { measureGateway } from "./gateway.ts";
import { measureMany } from "./many.ts";
import { measureRecovery } from "./recovery.ts";

/** The platform: start times, number of instances, and the cost of the gateway. */
export const platform: Suite = {
  name: "platform",
  async run(report) {
    await measureFirstResult(report);
    await measureMany(report);
    await measureRecovery(report);
    await measureGateway(report);
  },
};
