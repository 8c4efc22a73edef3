import { attributeError, valueError } from "@aenv/benchmark";
import { text } from "../../core/tools/parameters.ts";
import { toolsOf } from "../../core/tools/tool.ts";
import { equals } from "../../python/equality.ts";
import { attribute } from "../../python/values/objects.ts";
import { typeName } from "../../python/values/types.ts";
import type { PyValue } from "../../python/values/values.ts";
import type { AgentSide } from "./charges.ts";
import { getBill, getCustomer, getCustomerByPhone, getDevice, getLine, getPlan } from "./lookups.ts";
import { lowered } from "./lower.ts";
import type { TelecomDb } from "./model.ts";

const { read, generic } = toolsOf<AgentSide>();

export const getCustomerByPhoneTool = read({
  name: "get_customer_by_phone",
  summary: "Look a customer up by phone number.",
  details: "Both the customer's contact number and the numbers of their lines are searched.",
  parameters: { phone_number: text("The number to look for.") },
  run: ({ phone_number }, { db }) => getCustomerByPhone(db, phone_number),
});

export const getCustomerById = read({
  name: "get_customer_by_id",
  summary: "Look a customer up by id.",
  parameters: { customer_id: text("The customer's id.") },
  run: ({ customer_id }, { db }) => getCustomer(db, customer_id),
});

export const getCustomerByName = read({
  name: "get_customer_by_name",
  summary: "Look customers up by name and date of birth.",
  details: "Several may fit; the list is empty if none does.",
  parameters: {
    full_name: text("First and last name, in any case."),
    dob: text("The date of birth as YYYY-MM-DD; it has to agree."),
  },
  run: ({ full_name, dob }, { db }) =>
    attribute(db, "customers").filter(
      (customer) => lowered(customer.full_name) === lowered(full_name) && equals(customer.date_of_birth, dob),
    ),
});

export const getDetailsById = read({
  name: "get_details_by_id",
  summary: "Look anything up by its id.",
  details: "The id's first letter says what it is: L a line, D a device, B a bill, C a customer, P a plan.",
  parameters: { id: text("The id of a line, device, bill, customer or plan.") },
  run({ id }, { db }) {
    if (typeof id !== "string") throw attributeError(typeName(id), "startswith");
    const get = BY_LETTER[id.charAt(0)];
    if (get === undefined) throw valueError(`Unknown ID format or type: ${id}`);
    return get(db, id);
  },
});

const BY_LETTER: Readonly<Record<string, (db: TelecomDb, id: string) => PyValue>> = {
  L: getLine,
  D: getDevice,
  B: getBill,
  C: getCustomer,
  P: getPlan,
};

export const transferToHumanAgents = generic({
  name: "transfer_to_human_agents",
  summary: "Hand the user over to a human agent.",
  details: "Only for users who ask for a human where the policy allows it, or whose problem no other tool can solve.",
  parameters: { summary: text("What the user's problem is, in brief.") },
  run: () => "Transfer successful",
});
