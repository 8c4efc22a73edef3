import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import type { Dict } from "../../python/values/values.ts";
import { billHelpers, getBillsForCustomer, sendPaymentRequest } from "./bill-tools.ts";
import { freshMemory } from "./charges.ts";
import { getCustomerById, getCustomerByName, getCustomerByPhoneTool, getDetailsById, transferToHumanAgents } from "./customer-tools.ts";
import { disableRoaming, enableRoaming, getDataUsage, lineHelpers, refuelData, resumeLine, suspendLine } from "./line-tools.ts";
import type { TelecomDb } from "./model.ts";

export const telecomTools: ToolkitDefinition<TelecomDb, Dict<number>> = {
  className: "TelecomTools",
  tools: [
    getCustomerByPhoneTool,
    getCustomerById,
    getCustomerByName,
    getDetailsById,
    suspendLine,
    resumeLine,
    getBillsForCustomer,
    sendPaymentRequest,
    getDataUsage,
    enableRoaming,
    disableRoaming,
    transferToHumanAgents,
    refuelData,
  ],
  helpers: [...lineHelpers, ...billHelpers],
  memory: freshMemory,
};
