import { attributeError, valueError } from "@aenv/benchmark";
import { add, subtract } from "../../python/arithmetic.ts";
import { equals } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { elementsOf } from "../../python/sequences.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { variantOf } from "./lookups.ts";
import type { OrderItem, RetailDb, Variant } from "./model.ts";

/** The id of an item in an order, and that of its replacement. */
export type Swap = readonly [old: PyValue, replacement: PyValue];

/** Refuses ids that occur less often in the order than in the argument. */
export function mustHoldItems(items: readonly OrderItem[], ids: PyValue, complaint: (id: PyValue) => string): void {
  const asked = [...elementsOf(ids)];
  // Lists and strings have `count()`, dicts do not.
  if (ids instanceof Dict && asked.length > 0) throw attributeError("dict", "count");
  const held = items.map(({ item_id }) => item_id);
  for (const id of asked) if (count(asked, id) > count(held, id)) throw valueError(complaint(id));
}

function count(ids: readonly PyValue[], id: PyValue): number {
  return ids.filter((candidate) => equals(candidate, id)).length;
}

/** Pairs by position; both lists have the same length. */
export function pairsOf(ids: PyValue, newIds: PyValue): Swap[] {
  const replacements = [...elementsOf(newIds)];
  return [...elementsOf(ids)].map((old, i) => [old, replacements[i] ?? null]);
}

/** The price difference of all swaps, and the last replacement. Without swaps the difference is the int 0. */
export function priceSwaps(
  db: RetailDb,
  items: readonly OrderItem[],
  swaps: readonly Swap[],
  check: (swap: Swap) => void = () => {},
): { difference: PyValue; last: Variant | null } {
  let difference: PyValue = 0;
  let last: Variant | null = null;
  for (const swap of swaps) {
    check(swap);
    const [old, replacement] = swap;
    const item = itemOf(items, old);
    last = variantOf(db, item.product_id, replacement);
    if (!last.available) throw valueError(`New item ${str(replacement)} not found or available`);
    difference = add(difference, subtract(last.price, item.price));
  }
  return { difference, last };
}

/** The first item with that id. */
export function itemOf(items: readonly OrderItem[], id: PyValue): OrderItem {
  const item = items.find(({ item_id }) => equals(item_id, id));
  if (item === undefined) throw valueError(`Item ${str(id)} not found`);
  return item;
}
