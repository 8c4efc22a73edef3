import { toolsOf } from "../../../core/tools/tool.ts";
import { str } from "../../../python/repr.ts";
import type { PhoneSide } from "./model.ts";
import { surroundingsOf } from "./network.ts";

const { read, write } = toolsOf<PhoneSide>();

export const checkPaymentRequest = read({
  name: "check_payment_request",
  summary: "See whether you were asked to pay a bill.",
  parameters: {},
  run(_, { db }) {
    const request = surroundingsOf(db).payment_request;
    if (request === null) return "No payment request has been made.";
    return `You have a payment request for bill ${request.bill_id} of ${str(request.amount_due)} USD.`;
  },
});

export const makePayment = write({
  name: "make_payment",
  summary: "Pay the bill that you were asked to pay.",
  parameters: {},
  run(_, { db }) {
    const request = surroundingsOf(db).payment_request;
    if (request === null) return "You do not have a payment request.";
    request.paid = true;
    return `Payment of ${str(request.amount_due)} USD has been made for bill ${request.bill_id}.`;
  },
});
