import type { Suite } from "../suite.ts";
import { measureDirect, measureGateway } from "./calls.ts";
import { dataLacks } from "./data.ts";
import { measureFirstResult } from "./first-result.ts";
import { measureHashing } from "./hashing.ts";
import { measureInstances } from "./instances.ts";
import { FULL } from "./scale.ts";

/** tau2: cost of calls, instances and hashes of a real benchmark. */
export const tau2: Suite = {
  name: "tau2",
  needs: async () => dataLacks(),
  async run(report) {
    await measureDirect(report, FULL);
    await measureHashing(report, FULL);
    await measureFirstResult(report, FULL);
    await measureInstances(report, FULL);
    await measureGateway(report, FULL);
  },
};
