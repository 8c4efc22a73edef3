import { valueError } from "@aenv/benchmark";
import { add, subtract } from "../../python/arithmetic.ts";
import { isOrdered } from "../../python/equality.ts";
import { round } from "../../python/numbers.ts";
import { assign } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { editUser, paymentMethodOf, userOf } from "./lookups.ts";
import { GiftCard, type PaymentMethod, type RetailDb } from "./model.ts";

/** Only gift cards have a balance; other methods can pay any amount. */
export function mustCover(method: PaymentMethod, amount: PyValue, what: string): void {
  if (GiftCard.isInstance(method) && isOrdered(method.balance, "<", amount)) {
    throw valueError(`Insufficient gift card balance to pay for ${what}`);
  }
}

/** Takes an amount from a gift card, or adds it if it is negative; other methods have no balance. */
export function charge(db: RetailDb, userId: string, methodId: PyValue, amount: PyValue): void {
  changeBalance(db, userId, methodId, (balance) => subtract(balance, amount));
}

export function credit(db: RetailDb, userId: string, methodId: PyValue, amount: PyValue): void {
  changeBalance(db, userId, methodId, (balance) => add(balance, amount));
}

function changeBalance(db: RetailDb, userId: string, methodId: PyValue, change: (balance: PyValue) => PyValue): void {
  if (!GiftCard.isInstance(paymentMethodOf(userOf(db, userId), methodId))) return;
  const card = paymentMethodOf(editUser(db, userId), methodId);
  if (GiftCard.isInstance(card)) assign(card, "balance", round(change(card.balance), 2));
}
