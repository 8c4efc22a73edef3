import { valueError } from "@aenv/benchmark";
import { text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { assertHashable, equals, isIn } from "../../python/equality.ts";
import { assign } from "../../python/values/objects.ts";
import { charge, credit, mustCover } from "./gift-cards.ts";
import { editOrder, orderOf, paymentMethodOf, userOf } from "./lookups.ts";
import { type Order, OrderPayment, type RetailDb, UserAddress } from "./model.ts";
import { address, orderId } from "./parameters.ts";

const { read, write } = toolsOf<Side<RetailDb>>();

const CANCEL_REASONS = ["no longer needed", "ordered by mistake"];

export const getOrderDetails = read({
  name: "get_order_details",
  summary: "Show an order: its items, address, status and payments.",
  parameters: { order_id: orderId },
  run: ({ order_id }, { db }) => orderOf(db, order_id),
});

export const cancelPendingOrder = write({
  name: "cancel_pending_order",
  summary: "Cancel an order that is still pending, and refund it.",
  details:
    "An order that was processed or delivered cannot be cancelled. First tell the user what will happen, and go on only after a clear yes. " +
    "The order's status becomes 'cancelled'. A gift card has its money back at once, any other payment method in 5 to 7 business days. " +
    "The answer is the cancelled order.",
  parameters: { order_id: orderId, reason: text("Why: 'no longer needed' or 'ordered by mistake'.") },
  run({ order_id, reason }, { db }) {
    const { status, user_id, payment_history } = orderOf(db, order_id);
    if (status !== "pending") throw valueError("Non-pending order cannot be cancelled");
    assertHashable(reason);
    if (!isIn(reason, CANCEL_REASONS)) throw valueError("Invalid reason");
    // As in the reference, every entry is refunded, even refunds.
    const refunds = payment_history.map(({ amount, payment_method_id }) => {
      const refund = OrderPayment.create({ transaction_type: "refund", amount, payment_method_id });
      credit(db, user_id, payment_method_id, amount);
      return refund;
    });
    const order = editOrder(db, order_id);
    order.status = "cancelled";
    assign(order, "cancel_reason", reason);
    order.payment_history.push(...refunds);
    return order;
  },
});

export const modifyPendingOrderAddress = write({
  name: "modify_pending_order_address",
  summary: "Send a pending order to another address.",
  details: "First tell the user what will change, and go on only after a clear yes.",
  parameters: { order_id: orderId, ...address },
  run({ order_id, ...parts }, { db }) {
    assertPending(orderOf(db, order_id));
    const changed = UserAddress.create(parts);
    const order = editOrder(db, order_id);
    order.address = changed;
    return order;
  },
});

export const modifyPendingOrderPayment = write({
  name: "modify_pending_order_payment",
  summary: "Let another of the user's payment methods pay for a pending order.",
  details: "First tell the user what will change, and go on only after a clear yes.",
  parameters: {
    order_id: orderId,
    payment_method_id: text("The payment method that pays from now on, such as 'gift_card_0000000'; the user's details name them."),
  },
  run({ order_id, payment_method_id }, { db }) {
    const { status, user_id, payment_history } = orderOf(db, order_id);
    assertPending({ status });
    const method = paymentMethodOf(userOf(db, user_id), payment_method_id);
    const [paid] = payment_history;
    if (paid === undefined || payment_history.length > 1 || paid.transaction_type !== "payment") {
      throw valueError("There should be exactly one payment for a pending order");
    }
    if (equals(paid.payment_method_id, payment_method_id)) {
      throw valueError("The new payment method should be different from the current one");
    }
    const { amount } = paid;
    mustCover(method, amount, "the order");
    const order = editOrder(db, order_id);
    order.payment_history.push(
      OrderPayment.create({ transaction_type: "payment", amount, payment_method_id }),
      OrderPayment.create({ transaction_type: "refund", amount, payment_method_id: paid.payment_method_id }),
    );
    charge(db, user_id, payment_method_id, amount);
    credit(db, user_id, paid.payment_method_id, amount);
    return order;
  },
});

/** Accepts `pending` and `pending (items modified)`. */
function assertPending({ status }: Pick<Order, "status">): void {
  if (!status.includes("pending")) throw valueError("Non-pending order cannot be modified");
}
