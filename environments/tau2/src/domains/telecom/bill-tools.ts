import { compareText, typeError, valueError } from "@aenv/benchmark";
import { integer, optional, text } from "../../core/tools/parameters.ts";
import { toolsOf } from "../../core/tools/tool.ts";
import { equals, isIn, isOrdered, isTruthy } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { attribute } from "../../python/values/objects.ts";
import { float, isInt, type PyValue } from "../../python/values/values.ts";
import { LAST_MONTH_END, LAST_PERIOD, TODAY } from "./calendar.ts";
import { type AgentSide, addBill, addItem } from "./charges.ts";
import { billsOf, getBill, getCustomer, getLine, getPlan } from "./lookups.ts";
import { Bill, BillStatus, LineStatus } from "./model.ts";

const { read, write, helper } = toolsOf<AgentSide>();

export const getBillsForCustomer = read({
  name: "get_bills_for_customer",
  summary: "List a customer's bills, the latest first.",
  parameters: {
    customer_id: text("The customer's id."),
    limit: optional(integer("How many bills to list at most."), 12),
  },
  run({ customer_id, limit }, { db }) {
    const bills = billsOf(db, getCustomer(db, customer_id));
    bills.sort((a, b) => compareText(b.issue_date.isoformat(), a.issue_date.isoformat()));
    return firstOf(bills, limit);
  },
});

export const sendPaymentRequest = write({
  name: "send_payment_request",
  summary: "Ask a customer to pay a bill.",
  details: "A customer can be asked for one bill at a time. The bill then awaits its payment.",
  parameters: { customer_id: text("The customer whose bill it is."), bill_id: text("The bill to be paid.") },
  run({ customer_id, bill_id }, { db }) {
    const customer = getCustomer(db, customer_id);
    if (billsOf(db, customer).some(({ status }) => status === BillStatus.AWAITING_PAYMENT)) {
      throw valueError("A bill is already awaiting payment for this customer");
    }
    if (!isIn(bill_id, customer.bill_ids)) throw valueError(`Bill ${str(bill_id)} not found for customer ${str(customer_id)}`);
    getBill(db, bill_id).status = BillStatus.AWAITING_PAYMENT;
    return `Payment request sent to the customer for bill ${str(bill_id)}`;
  },
});

export const billHelpers = [
  helper({
    name: "suspend_line_for_overdue_bill",
    parameters: ["customer_id", "line_id", "new_bill_id", "contract_ended"],
    run({ customer_id, line_id, new_bill_id, contract_ended }, { db }) {
      // As in the reference, the line may belong to another customer.
      const line = getLine(db, line_id);
      if (line.status !== LineStatus.ACTIVE) throw valueError("Line must be active to suspend for unpaid bill");
      const amount = getPlan(db, line.plan_id).price_per_month;
      if (isOrdered(amount, "<=", 0)) throw valueError("Amount must be positive for overdue bill");
      const customer = getCustomer(db, customer_id);
      if (billsOf(db, customer).some(({ status }) => status === BillStatus.OVERDUE)) {
        throw valueError("Customer already has an overdue bill");
      }
      const bill = Bill.create({ bill_id: new_bill_id, customer_id, ...LAST_PERIOD, total_due: float(0), status: BillStatus.OVERDUE });
      addItem(bill, amount, `Charge for line ${str(line_id)}`);
      addBill(db, customer, bill);
      line.status = LineStatus.SUSPENDED;
      line.suspension_start_date = TODAY;
      if (isTruthy(contract_ended)) line.contract_end_date = LAST_MONTH_END;
      return `Line ${str(line_id)} suspended for unpaid bill ${str(new_bill_id)}. Contract ended: ${str(contract_ended)}`;
    },
  }),
  helper({
    name: "_set_bill_to_paid",
    parameters: ["bill_id"],
    run({ bill_id }, { db }) {
      getBill(db, bill_id).status = BillStatus.PAID;
      return `Bill ${str(bill_id)} set to paid`;
    },
  }),
  helper({
    name: "assert_overdue_bill_exists",
    parameters: ["customer_id", "overdue_bill_id"],
    run({ customer_id, overdue_bill_id }, { db }) {
      const { bill_ids } = getCustomer(db, customer_id);
      if (!isIn(overdue_bill_id, bill_ids)) throw valueError(`Overdue bill ${str(overdue_bill_id)} not found`);
      if (getBill(db, overdue_bill_id).status !== BillStatus.OVERDUE) {
        throw valueError(`Overdue bill ${str(overdue_bill_id)} is not overdue`);
      }
      return true;
    },
  }),
  helper({
    name: "assert_no_overdue_bill",
    parameters: ["overdue_bill_id"],
    run({ overdue_bill_id }, { db }) {
      const bill = attribute(db, "bills").find(({ bill_id }) => equals(bill_id, overdue_bill_id));
      return bill === undefined || bill.status === BillStatus.PAID;
    },
  }),
];

/** `items[:limit]`: a negative limit counts from the end. */
function firstOf(items: PyValue[], limit: PyValue): PyValue[] {
  if (limit === null) return items;
  if (!isInt(limit) && typeof limit !== "boolean") {
    throw typeError("slice indices must be integers or None or have an __index__ method");
  }
  return items.slice(0, Number(limit));
}
