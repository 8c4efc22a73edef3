import { valueError } from "@aenv/benchmark";
import { subtract } from "../../python/arithmetic.ts";
import { equals, isOrdered, lookup } from "../../python/equality.ts";
import { itemAt } from "../../python/sequences.ts";
import { assign } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { type FlightDb, Payment, type User } from "./model.ts";
import { editUser } from "./records.ts";

/** Payments are checked separately: two with one gift card may exceed its balance together. */
export function checkPayments(user: User, payments: readonly Payment[]): void {
  for (const { payment_id, amount } of payments) {
    const method = user.payment_methods.get(payment_id);
    if (method === undefined) throw valueError(`Payment method ${payment_id} not found`);
    if (method.source !== "credit_card" && isOrdered(method.amount, "<", amount)) {
      throw valueError(`Not enough balance in payment method ${payment_id}`);
    }
  }
}

/** A certificate is removed whatever its amount. If it is used twice, the second use fails, and earlier payments are kept. */
export function takePayments(db: FlightDb, userId: PyValue, payments: readonly Payment[]): void {
  const { payment_methods } = editUser(db, userId);
  for (const { payment_id, amount } of payments) {
    itemAt(payment_methods, payment_id);
    const method = payment_methods.get(payment_id);
    if (method?.source === "gift_card") assign(method, "amount", subtract(method.amount, amount));
    else if (method?.source === "certificate") payment_methods.delete(payment_id);
  }
}

/** The payment for a change of a reservation, a refund if the total is negative; null if there is nothing to pay. */
export function payChange(db: FlightDb, userId: PyValue, paymentId: PyValue, total: PyValue): Payment | null {
  const method = lookup(editUser(db, userId).payment_methods, paymentId);
  if (method === undefined) throw valueError("Payment method not found");
  if (method.source === "certificate") throw valueError("Certificate cannot be used to update reservation");
  if (method.source === "gift_card") {
    if (isOrdered(method.amount, "<", total)) throw valueError("Gift card balance is not enough");
    // As in the reference, the balance is reduced before the payment is validated: a total with a fraction is refused below, but the balance is already reduced.
    assign(method, "amount", subtract(method.amount, total));
  }
  return equals(total, 0) ? null : Payment.create({ payment_id: paymentId, amount: total });
}
