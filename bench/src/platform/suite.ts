import type { Suite } from "../suite.ts";
import { measureFirstResult } from "./first-result.ts";
import { measureGateway } from "./gateway.ts";
import { measureMany } from "./many.ts";

/** The platform: how soon instances are there, how many there can be, and what the way to them costs. */
export const platform: Suite = {
  name: "platform",
  async run(report) {
    await measureFirstResult(report);
    await measureMany(report);
    await measureGateway(report);
  },
};
