import { valueError } from "@aenv/benchmark";
import { number, text } from "../../core/tools/parameters.ts";
import { toolsOf } from "../../core/tools/tool.ts";
import { add, multiply, subtract } from "../../python/arithmetic.ts";
import { equals, isOrdered } from "../../python/equality.ts";
import { formatFixed, toDouble } from "../../python/numbers.ts";
import { str } from "../../python/repr.ts";
import { assign, attribute } from "../../python/values/objects.ts";
import { Dict, isNumber, type PyValue } from "../../python/values/values.ts";
import { CYCLE_END, TODAY } from "./calendar.ts";
import { type AgentSide, chargeOnce } from "./charges.ts";
import { getLineOf, getPlan } from "./lookups.ts";
import { LineStatus } from "./model.ts";

const { read, write, helper } = toolsOf<AgentSide>();

const ownedLine = { customer_id: text("The customer whose line it is."), line_id: text("The line.") };

export const suspendLine = write({
  name: "suspend_line",
  summary: "Suspend an active line.",
  details: "A suspended line costs a monthly holding fee of $5.",
  parameters: { ...ownedLine, reason: text("Why it is suspended.") },
  run({ customer_id, line_id }, { db }) {
    const line = getLineOf(db, customer_id, line_id);
    if (line.status !== LineStatus.ACTIVE) throw valueError("Line must be active to suspend");
    line.status = LineStatus.SUSPENDED;
    line.suspension_start_date = TODAY;
    return Dict.of<PyValue>({ message: "Line suspended successfully. $5/month holding fee will apply.", line });
  },
});

export const resumeLine = write({
  name: "resume_line",
  summary: "Make a line active that is suspended or waits for its activation.",
  parameters: ownedLine,
  run({ customer_id, line_id }, { db }) {
    const line = getLineOf(db, customer_id, line_id);
    if (line.status !== LineStatus.SUSPENDED && line.status !== LineStatus.PENDING_ACTIVATION) {
      throw valueError("Line must be suspended to resume");
    }
    line.status = LineStatus.ACTIVE;
    line.suspension_start_date = null;
    return Dict.of<PyValue>({ message: "Line resumed successfully", line });
  },
});

export const getDataUsage = read({
  name: "get_data_usage",
  summary: "Show how much data a line has used in this billing cycle.",
  details: "Also shows the plan's limit, the data that was refueled, and the day on which the cycle ends.",
  parameters: ownedLine,
  run({ customer_id, line_id }, { db }) {
    const { plan_id, data_used_gb, data_refueling_gb } = getLineOf(db, customer_id, line_id);
    const { data_limit_gb } = getPlan(db, plan_id);
    return Dict.of<PyValue>({ line_id, data_used_gb, data_limit_gb, data_refueling_gb, cycle_end_date: CYCLE_END });
  },
});

export const enableRoaming = write({
  name: "enable_roaming",
  summary: "Allow a line to be used abroad.",
  parameters: ownedLine,
  run({ customer_id, line_id }, { db }) {
    const line = getLineOf(db, customer_id, line_id);
    if (line.roaming_enabled) return "Roaming was already enabled";
    line.roaming_enabled = true;
    return "Roaming enabled successfully";
  },
});

export const disableRoaming = write({
  name: "disable_roaming",
  summary: "Forbid a line to be used abroad.",
  parameters: ownedLine,
  run({ customer_id, line_id }, { db }) {
    const line = getLineOf(db, customer_id, line_id);
    if (!line.roaming_enabled) return "Roaming was already disabled";
    line.roaming_enabled = false;
    return "Roaming disabled successfully";
  },
});

export const refuelData = write({
  name: "refuel_data",
  summary: "Add data to a line, at the price of its plan.",
  details: "The charge goes on the customer's next bill.",
  parameters: { ...ownedLine, gb_amount: number("How many gigabytes to add; more than none.") },
  run({ customer_id, line_id, gb_amount }, side) {
    const line = getLineOf(side.db, customer_id, line_id);
    if (isOrdered(gb_amount, "<=", 0)) throw valueError("Refuel amount must be positive");
    const price = getPlan(side.db, line.plan_id).data_refueling_price_per_gb;
    const charge = multiply(gb_amount, price);
    assign(line, "data_refueling_gb", add(line.data_refueling_gb, gb_amount));
    chargeOnce(side, customer_id, charge, `Data refueling: ${str(gb_amount)} GB at $${str(price)}/GB`);
    return Dict.of<PyValue>({
      message: `Successfully added ${str(gb_amount)} GB of data for line ${str(line_id)} for $${formatFixed(charge)}`,
      new_data_refueling_gb: line.data_refueling_gb,
      charge,
    });
  },
});

export const lineHelpers = [
  helper({
    name: "set_data_usage",
    parameters: ["customer_id", "line_id", "data_used_gb"],
    run({ customer_id, line_id, data_used_gb }, { db }) {
      assign(getLineOf(db, customer_id, line_id), "data_used_gb", data_used_gb);
      return `Data usage set to ${str(data_used_gb)} GB for line ${str(line_id)}`;
    },
  }),
  helper({
    name: "get_available_plan_ids",
    parameters: [],
    run: (_, { db }) => attribute(db, "plans").map(({ plan_id }) => plan_id),
  }),
  helper({
    name: "assert_data_refueling_amount",
    parameters: ["customer_id", "line_id", "expected_amount"],
    run({ customer_id, line_id, expected_amount }, { db }) {
      const difference = subtract(getLineOf(db, customer_id, line_id).data_refueling_gb, expected_amount);
      return isNumber(difference) && Math.abs(toDouble(difference)) < 1e-6;
    },
  }),
  helper({
    name: "assert_line_status",
    parameters: ["customer_id", "line_id", "expected_status"],
    run: ({ customer_id, line_id, expected_status }, { db }) => equals(getLineOf(db, customer_id, line_id).status, expected_status),
  }),
];
