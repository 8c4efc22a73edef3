import { PyError } from "@aenv/benchmark";
import { toolsOf } from "../../../core/tools/tool.ts";
import { equals } from "../../../python/equality.ts";
import { str } from "../../../python/repr.ts";
import { type PhoneSide, SimStatus } from "./model.ts";
import { deviceOf, searchNetwork, simStatusOf } from "./network.ts";
import { withStatusBar } from "./status-bar.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

const WORDS = new Map([
  [SimStatus.ACTIVE, "Your SIM card is active and working."],
  [SimStatus.MISSING, "No SIM card detected in the phone."],
  [SimStatus.LOCKED_PIN, "The SIM card is locked with a PIN code."],
  [SimStatus.LOCKED_PUK, "The SIM card is locked with a PUK code."],
]);

export const checkSimStatus = read({
  name: "check_sim_status",
  summary: "See whether your SIM card works.",
  parameters: {},
  run: (_, { db }) => WORDS.get(simStatusOf(deviceOf(db))) ?? "",
});

export const reseatSimCard = write({
  name: "reseat_sim_card",
  summary: "Take the SIM card out and put it back in.",
  parameters: {},
  run(_, { db }) {
    deviceOf(db).sim_card_missing = false;
    searchNetwork(db);
    if (simStatusOf(deviceOf(db)) === SimStatus.MISSING) throw new PyError("AssertionError", "");
    return withStatusBar("SIM card re-seated successfully.", db);
  },
});

export const simHelpers = [
  helper({
    name: "unseat_sim_card",
    parameters: [],
    run(_, { db }) {
      deviceOf(db).sim_card_missing = true;
      searchNetwork(db);
      return "SIM card un-seated successfully.";
    },
  }),
  helper({
    name: "lock_sim_card",
    parameters: ["mode"],
    run({ mode }, { db }) {
      if (equals(mode, "pin")) deviceOf(db).sim_card_status = SimStatus.LOCKED_PIN;
      else if (equals(mode, "puk")) deviceOf(db).sim_card_status = SimStatus.LOCKED_PUK;
      searchNetwork(db);
      return `SIM card locked successfully in ${str(mode)} mode.`;
    },
  }),
];
