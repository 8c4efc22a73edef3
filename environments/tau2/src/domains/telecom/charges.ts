import type { Side } from "../../core/tools/tool.ts";
import { add } from "../../python/arithmetic.ts";
import { isOrdered } from "../../python/equality.ts";
import { assign } from "../../python/values/objects.ts";
import { Dict, float, type PyValue } from "../../python/values/values.ts";
import { NEXT_PERIOD, TODAY } from "./calendar.ts";
import { billsOf, getCustomer } from "./lookups.ts";
import { Bill, BillStatus, type Customer, LineItem, type TelecomDb } from "./model.ts";

/** The agent's side counts the bills that it has opened, for their ids. */
export type AgentSide = Side<TelecomDb, Dict<number>>;

export const freshMemory = (): Dict<number> => Dict.of({ openedBills: 0 });

/** Adds a charge to the customer's draft bill, which is opened if there is none. */
export function chargeOnce(side: AgentSide, customerId: PyValue, amount: PyValue, description: string): void {
  const customer = getCustomer(side.db, customerId);
  const draft = billsOf(side.db, customer).find(({ status }) => status === BillStatus.DRAFT);
  addItem(draft ?? openDraft(side, customer), amount, description);
}

export function addItem(bill: Bill, amount: PyValue, description: string): void {
  const item_type = isOrdered(amount, "<", 0) ? "Credit" : "Charge";
  bill.line_items.push(LineItem.create({ description, amount, date: TODAY, item_type }));
  assign(bill, "total_due", add(bill.total_due, amount));
}

export function addBill(db: TelecomDb, customer: Customer, bill: Bill): void {
  db.bills.push(bill);
  customer.bill_ids.push(bill.bill_id);
}

/** The id is a counter, not random, so that equal episodes have equal hashes. */
function openDraft({ db, memory }: AgentSide, customer: Customer): Bill {
  const count = (memory.get("openedBills") ?? 0) + 1;
  memory.set("openedBills", count);
  const bill_id = `B${count.toString(16).padStart(8, "0")}`;
  const { customer_id } = customer;
  const bill = Bill.create({ bill_id, customer_id, ...NEXT_PERIOD, total_due: float(0), line_items: [], status: BillStatus.DRAFT });
  addBill(db, customer, bill);
  return bill;
}
