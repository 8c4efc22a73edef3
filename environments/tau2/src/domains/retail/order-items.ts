import { compareText, PyError, valueError } from "@aenv/benchmark";
import { text, texts } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { subtract } from "../../python/arithmetic.ts";
import { equals, isOrdered } from "../../python/equality.ts";
import { round } from "../../python/numbers.ts";
import { str } from "../../python/repr.ts";
import { elementsOf, lengthOf } from "../../python/sequences.ts";
import { assign } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { charge, mustCover } from "./gift-cards.ts";
import { editOrder, orderOf, paymentMethodOf, userOf } from "./lookups.ts";
import { GiftCard, OrderPayment, type RetailDb } from "./model.ts";
import { differenceMethodId, orderId } from "./parameters.ts";
import { itemOf, mustHoldItems, pairsOf, priceSwaps } from "./swaps.ts";

const { write } = toolsOf<Side<RetailDb>>();

const newItemIds = texts(
  "The ids of the items to have instead, such as '1008292230': each stands where the id that it replaces stands, and is of the same product. An id may occur repeatedly.",
);

export const exchangeDeliveredOrderItems = write({
  name: "exchange_delivered_order_items",
  summary: "Request that items of a delivered order be exchanged for other items of the same products.",
  details:
    "An order can be exchanged or returned only once. First tell the user what will be exchanged for what, and go on only after a clear yes.",
  parameters: {
    order_id: orderId,
    item_ids: texts("The ids of the items to give back, such as '1008292230'. An id may occur repeatedly."),
    new_item_ids: newItemIds,
    payment_method_id: differenceMethodId,
  },
  run({ order_id, item_ids, new_item_ids, payment_method_id }, { db }) {
    const { status, user_id, items } = orderOf(db, order_id);
    if (status !== "delivered") throw valueError("Non-delivered order cannot be exchanged");
    mustHoldItems(items, item_ids, (id) => `Number of ${str(id)} not found.`);
    if (lengthOf(item_ids) !== lengthOf(new_item_ids)) throw valueError("The number of items to be exchanged should match.");
    const difference = round(priceSwaps(db, items, pairsOf(item_ids, new_item_ids)).difference, 2);
    mustCover(paymentMethodOf(userOf(db, user_id), payment_method_id), difference, "the price difference");

    const order = editOrder(db, order_id);
    order.status = "exchange requested";
    // As in the reference, each list is sorted separately, so the pairs are lost.
    order.exchange_items = sorted(item_ids);
    order.exchange_new_items = sorted(new_item_ids);
    assign(order, "exchange_payment_method_id", payment_method_id);
    assign(order, "exchange_price_difference", difference);
    return order;
  },
});

export const modifyPendingOrderItems = write({
  name: "modify_pending_order_items",
  summary: "Replace items of a pending order by other items of the same products.",
  details: "Possible only once per order. First tell the user what will be replaced by what, and go on only after a clear yes.",
  parameters: {
    order_id: orderId,
    item_ids: texts("The ids of the items to replace, such as '1008292230'. An id may occur repeatedly."),
    new_item_ids: newItemIds,
    payment_method_id: differenceMethodId,
  },
  run({ order_id, item_ids, new_item_ids, payment_method_id }, { db }) {
    const { status, user_id, items } = orderOf(db, order_id);
    if (status !== "pending") throw valueError("Non-pending order cannot be modified");
    mustHoldItems(items, item_ids, (id) => `${str(id)} not found`);
    if (lengthOf(item_ids) !== lengthOf(new_item_ids)) throw valueError("The number of items to be exchanged should match");
    const pairs = pairsOf(item_ids, new_item_ids);
    const { difference, last } = priceSwaps(db, items, pairs, ([old, replacement]) => {
      if (equals(old, replacement)) throw valueError("The new item id should be different from the old item id");
    });
    mustCover(paymentMethodOf(userOf(db, user_id), payment_method_id), difference, "the new item");

    const order = editOrder(db, order_id);
    const isPaid = isOrdered(difference, ">", 0);
    order.payment_history.push(
      OrderPayment.create({
        transaction_type: isPaid ? "payment" : "refund",
        amount: isPaid ? difference : subtract(0, difference),
        payment_method_id,
      }),
    );
    charge(db, user_id, payment_method_id, difference);
    for (const [old, replacement] of pairs) {
      // Searches the current ids, so an item may change twice.
      const item = itemOf(order.items, old);
      assign(item, "item_id", replacement);
      if (last === null) continue;
      // As in the reference, all items get the price and options of the last replacement.
      item.price = last.price;
      item.options = last.options;
    }
    order.status = "pending (item modified)";
    return order;
  },
});

export const returnDeliveredOrderItems = write({
  name: "return_delivered_order_items",
  summary: "Request that items of a delivered order be taken back.",
  details:
    "The order's status becomes 'return requested'. First tell the user what will be returned, and go on only after a clear yes. " +
    "An email then tells the user how and where to send the items.",
  parameters: {
    order_id: orderId,
    item_ids: texts("The ids of the items to take back, such as '1008292230'. An id may occur repeatedly."),
    payment_method_id: text(
      "What gets the money back: the payment method that paid for the order, or a gift card of the user's, such as 'gift_card_0000000'.",
    ),
  },
  run({ order_id, item_ids, payment_method_id }, { db }) {
    const { status, user_id, items, payment_history } = orderOf(db, order_id);
    if (status !== "delivered") throw valueError("Non-delivered order cannot be returned");
    const method = paymentMethodOf(userOf(db, user_id), payment_method_id);
    if (!GiftCard.isInstance(method)) {
      const [original] = payment_history;
      if (original === undefined) throw new PyError("IndexError", "list index out of range");
      if (!equals(original.payment_method_id, payment_method_id)) {
        throw valueError("Payment method should be the original payment method");
      }
    }
    mustHoldItems(items, item_ids, () => "Some item not found");

    const order = editOrder(db, order_id);
    order.status = "return requested";
    order.return_items = sorted(item_ids);
    assign(order, "return_payment_method_id", payment_method_id);
    return order;
  },
});

/** Ids that were found are strings. */
function sorted(ids: PyValue): string[] {
  return [...elementsOf(ids)].map(str).sort(compareText);
}
