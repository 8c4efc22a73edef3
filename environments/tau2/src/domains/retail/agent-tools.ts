import { text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import { calculate as calculateExpression } from "../../python/calculate/calculate.ts";
import { getItemDetails, getProductDetails, listAllProductTypes } from "./catalog.ts";
import type { RetailDb } from "./model.ts";
import { exchangeDeliveredOrderItems, modifyPendingOrderItems, returnDeliveredOrderItems } from "./order-items.ts";
import { cancelPendingOrder, getOrderDetails, modifyPendingOrderAddress, modifyPendingOrderPayment } from "./orders.ts";
import { findUserIdByEmail, findUserIdByNameZip, getUserDetails, modifyUserAddress } from "./user-accounts.ts";

const { generic } = toolsOf<Side<RetailDb>>();

const calculate = generic({
  name: "calculate",
  summary: "Work out an arithmetic expression.",
  parameters: { expression: text("The expression, such as '2 + 2': numbers, + - * /, parentheses and blanks.") },
  run: ({ expression }) => calculateExpression(expression),
});

const transferToHumanAgents = generic({
  name: "transfer_to_human_agents",
  summary: "Hand the user over to a human agent.",
  details: "Only for users who ask for a human, or whose request cannot be served with these tools under the policy.",
  parameters: { summary: text("What the user wants, in brief.") },
  run: () => "Transfer successful",
});

export const retailTools: ToolkitDefinition<RetailDb, null> = {
  className: "RetailTools",
  tools: [
    calculate,
    cancelPendingOrder,
    exchangeDeliveredOrderItems,
    findUserIdByNameZip,
    findUserIdByEmail,
    getOrderDetails,
    getProductDetails,
    getItemDetails,
    getUserDetails,
    listAllProductTypes,
    modifyPendingOrderAddress,
    modifyPendingOrderItems,
    modifyPendingOrderPayment,
    modifyUserAddress,
    returnDeliveredOrderItems,
    transferToHumanAgents,
  ],
  helpers: [],
};
