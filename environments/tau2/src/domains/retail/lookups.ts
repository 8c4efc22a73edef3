import { valueError } from "@aenv/benchmark";
import { lookup } from "../../python/equality.ts";
import { attribute } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import type { Order, PaymentMethod, Product, RetailDb, User, Variant } from "./model.ts";

export function orderOf(db: RetailDb, id: PyValue): Order {
  return found(attribute(db, "orders").find(id), "Order");
}

/** The order for editing; call it after all checks. */
export function editOrder(db: RetailDb, id: PyValue): Order {
  return found(attribute(db, "orders").edit(id), "Order");
}

export function userOf(db: RetailDb, id: PyValue): User {
  return found(attribute(db, "users").find(id), "User");
}

export function editUser(db: RetailDb, id: PyValue): User {
  return found(attribute(db, "users").edit(id), "User");
}

export function productOf(db: RetailDb, id: PyValue): Product {
  return found(attribute(db, "products").find(id), "Product");
}

export function variantOf(db: RetailDb, productId: PyValue, itemId: PyValue): Variant {
  return found(lookup(productOf(db, productId).variants, itemId), "Variant");
}

export function paymentMethodOf(user: User, id: PyValue): PaymentMethod {
  return found(lookup(user.payment_methods, id), "Payment method");
}

function found<T>(value: T | undefined, noun: string): T {
  if (value === undefined) throw valueError(`${noun} not found`);
  return value;
}
