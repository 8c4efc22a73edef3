import type { Environment } from "../../core/environment.ts";
import { add } from "../../python/arithmetic.ts";
import { isOrdered } from "../../python/equality.ts";
import { attribute } from "../../python/values/objects.ts";
import { billsOf, getBill, getCustomerByPhone, getLineByPhone, getPlan } from "./lookups.ts";
import { BillStatus, LineStatus, type TelecomDb } from "./model.ts";
import { PaymentRequest, type TelecomUserDb, type UserSurroundings } from "./phone/model.ts";

/**
 * Copies the state of the line to the phone, and payment requests and payments between the two sides.
 * The phone does not search for a network because of it: that needs an action of the user.
 */
export function sync({ tools, userTools }: Environment): void {
  if (tools === null || userTools === null) return;
  // Either side may have the other's database; then the first missing field raises an error.
  const surroundings = attribute(userTools.db as TelecomUserDb, "surroundings");
  if (surroundings.phone_number === null) return;
  const db = tools.db as TelecomDb;
  syncLine(db, surroundings);
  syncPayment(db, surroundings);
}

function syncLine(db: TelecomDb, surroundings: UserSurroundings): void {
  const line = getLineByPhone(db, surroundings.phone_number);
  surroundings.line_active = line.status === LineStatus.ACTIVE;
  surroundings.roaming_allowed = line.roaming_enabled;
  const allowance = add(getPlan(db, line.plan_id).data_limit_gb, line.data_refueling_gb);
  surroundings.mobile_data_usage_exceeded = isOrdered(line.data_used_gb, ">=", allowance);
}

function syncPayment(db: TelecomDb, surroundings: UserSurroundings): void {
  if (surroundings.payment_request?.paid) {
    getBill(db, surroundings.payment_request.bill_id).status = BillStatus.PAID;
    surroundings.payment_request = null;
  }
  if (surroundings.payment_request !== null) return;
  const bills = billsOf(db, getCustomerByPhone(db, surroundings.phone_number));
  const awaiting = bills.find(({ status }) => status === BillStatus.AWAITING_PAYMENT);
  if (awaiting === undefined) return;
  surroundings.payment_request = PaymentRequest.create({ bill_id: awaiting.bill_id, amount_due: awaiting.total_due, paid: false });
}
