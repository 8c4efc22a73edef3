import { beforeEach, describe, expect, it } from "vitest";
import { Toolkit } from "../../core/tools/toolkit.ts";
import { readJson } from "../../python/json/reader.ts";
import { toJsonStr } from "../../python/json/writer.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { retailTools } from "./agent-tools.ts";
import { retail } from "./domain.ts";
import { RetailDb } from "./model.ts";

/** A test shop: lamps and rugs, a delivered and a pending order, a gift card with a balance of 20. */
const address = { address1: "1 Quay", address2: "", city: "Port", country: "Land", state: "ST", zip: "00001" };
const variant = (item_id: string, color: string, price: number, available = true) => ({ item_id, options: { color }, available, price });
const item = (name: string, product_id: string, { item_id, price, options }: ReturnType<typeof variant>) => ({
  name,
  product_id,
  item_id,
  price,
  options,
});
const lamps = [variant("11", "red", 10.1), variant("12", "blue", 10.3), variant("13", "green", 95.5), variant("14", "gold", 9, false)];
const rugs = [variant("21", "grey", 30), variant("22", "sand", 25.5)];
const order = (order_id: string, status: string, payment_method_id: string) => ({
  order_id,
  user_id: "ann",
  address,
  items: [item("Lamp", "1", variant("11", "red", 10.1)), item("Rug", "2", variant("21", "grey", 30))],
  status,
  fulfillments: [],
  payment_history: [{ transaction_type: "payment", amount: 40.1, payment_method_id }],
});
const byId = <K extends string, T extends Record<K, string>>(key: K, rows: readonly T[]) =>
  Object.fromEntries(rows.map((row) => [row[key], row]));
const shop = JSON.stringify({
  products: {
    "1": { name: "Lamp", product_id: "1", variants: byId("item_id", lamps) },
    "2": { name: "Rug", product_id: "2", variants: byId("item_id", rugs) },
  },
  users: {
    ann: {
      user_id: "ann",
      name: { first_name: "Ann", last_name: "Reed" },
      address,
      email: "Ann@example.com",
      payment_methods: { gift: { source: "gift_card", id: "gift", balance: 20.5 }, pal: { source: "paypal", id: "pal" } },
      orders: ["#P", "#D"],
    },
  },
  orders: byId("order_id", [order("#P", "pending", "gift"), order("#D", "delivered", "pal")]),
});

let tools: Toolkit;
beforeEach(() => {
  tools = new Toolkit(retailTools, RetailDb.validate(readJson(shop)));
});

const run = (name: string, args: Record<string, PyValue>): string => toJsonStr(tools.useTool(name, Dict.of(args)));
const balance = (): unknown => JSON.parse(run("get_user_details", { user_id: "ann" })).payment_methods.gift.balance;
const swap = (order_id: string, item_ids: PyValue, new_item_ids: PyValue, payment_method_id: PyValue = "pal") => ({
  order_id,
  item_ids,
  new_item_ids,
  payment_method_id,
});

describe("a pending order", () => {
  it("gives all new items the price and options of the last one, as the reference does", () => {
    const modified = JSON.parse(run("modify_pending_order_items", swap("#P", ["21", "11"], ["22", "12"], "gift")));
    expect(modified.items).toEqual([item("Lamp", "1", variant("12", "blue", 10.3)), item("Rug", "2", variant("22", "blue", 10.3))]);
    expect(modified.payment_history[1]).toEqual({ transaction_type: "refund", amount: 4.5 - (10.3 - 10.1), payment_method_id: "gift" });
    expect([modified.status, balance()]).toEqual(["pending (item modified)", 24.8]);
    expect(() => run("cancel_pending_order", { order_id: "#P", reason: "no longer needed" })).toThrow(
      "Non-pending order cannot be cancelled",
    );
  });

  it("with a changed payment method refunds every entry of its history when cancelled", () => {
    run("modify_pending_order_payment", { order_id: "#P", payment_method_id: "pal" });
    expect(balance()).toBe(60.6);
    const cancelled = JSON.parse(run("cancel_pending_order", { order_id: "#P", reason: "ordered by mistake" }));
    const kinds = cancelled.payment_history.map((entry: { transaction_type: string }) => entry.transaction_type);
    expect(kinds).toEqual(["payment", "payment", "refund", "refund", "refund", "refund"]);
    expect([cancelled.status, balance()]).toEqual(["cancelled", 140.8]);
  });

  it("gets a new address without changing its user's", () => {
    const changed = JSON.parse(run("modify_pending_order_address", { ...address, order_id: "#P", city: "Cove" }));
    expect(changed.address.city).toBe("Cove");
    expect(JSON.parse(run("get_user_details", { user_id: "ann" })).address).toEqual(address);
  });
});

describe("a delivered order", () => {
  it("requests an exchange with each list sorted separately, and without a payment", () => {
    const exchanged = run("exchange_delivered_order_items", swap("#D", ["21", "11"], ["22", "12"], "gift"));
    expect(exchanged).toContain('"exchange_items": ["11", "21"], "exchange_new_items": ["12", "22"]');
    expect(exchanged).toContain('"exchange_price_difference": -4.3,');
    expect(balance()).toBe(20.5);
  });

  it("has the price difference 0, an int, if nothing is exchanged", () => {
    expect(run("exchange_delivered_order_items", swap("#D", [], []))).toContain('"exchange_price_difference": 0,');
  });

  it("is refunded to its payment method or to a gift card, once", () => {
    const args = { order_id: "#D", item_ids: ["11"], payment_method_id: "gift" };
    expect(run("return_delivered_order_items", args)).toContain('"return_items": ["11"], "return_payment_method_id": "gift"');
    expect(() => run("return_delivered_order_items", args)).toThrow("Non-delivered order cannot be returned");
  });
});

describe("an invalid call", () => {
  it.each<[string, Record<string, PyValue>, string]>([
    ["get_order_details", { order_id: "P" }, "Order not found"],
    ["get_item_details", { item_id: ["11"] }, "unhashable type: 'list'"],
    ["find_user_id_by_email", { email: 1 }, "'int' object has no attribute 'lower'"],
    ["find_user_id_by_name_zip", { first_name: "bob", last_name: 1, zip: "00001" }, "User not found"],
    ["cancel_pending_order", { order_id: "#P", reason: "why not" }, "Invalid reason"],
    ["exchange_delivered_order_items", swap("#D", ["11", "11"], ["12", "12"]), "Number of 11 not found."],
    ["exchange_delivered_order_items", swap("#D", ["11"], []), "The number of items to be exchanged should match."],
    ["exchange_delivered_order_items", swap("#D", ["11"], ["22"]), "Variant not found"],
    ["exchange_delivered_order_items", swap("#D", ["11"], ["14"]), "New item 14 not found or available"],
    [
      "exchange_delivered_order_items",
      swap("#D", ["11"], ["13"], "gift"),
      "Insufficient gift card balance to pay for the price difference",
    ],
    ["modify_pending_order_items", swap("#P", "11", ["12"]), "1 not found"],
    ["modify_pending_order_items", swap("#P", Dict.of({ "11": 1 }), ["12"]), "'dict' object has no attribute 'count'"],
    ["modify_pending_order_items", swap("#P", ["11"], ["11"]), "The new item id should be different from the old item id"],
    [
      "modify_pending_order_payment",
      { order_id: "#P", payment_method_id: "gift" },
      "The new payment method should be different from the current one",
    ],
    ["modify_user_address", { ...address, user_id: "ann", zip: 1, country: null }, "2 validation errors for UserAddress\ncountry\n"],
  ])("%s with %o raises the error and changes nothing", (name, args, complaint) => {
    const before = tools.dbHash();
    expect(() => run(name, args)).toThrow(complaint);
    expect(tools.dbHash()).toBe(before);
  });
});

it("the store's products are listed by name", () => expect(run("list_all_product_types", {})).toBe('{"Lamp": "1", "Rug": "2"}'));

it("a user is found by name, in any case, and zip", () =>
  expect(run("find_user_id_by_name_zip", { first_name: "ANN", last_name: "reed", zip: "00001" })).toBe("ann"));

it("retail does not support solo mode", () => expect(retail.soloError).toBe("Retail domain does not support solo mode"));
