import { valueError } from "@aenv/benchmark";
import { text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { lookup } from "../../python/equality.ts";
import { writeJson } from "../../python/json/writer.ts";
import { attribute } from "../../python/values/objects.ts";
import { Dict } from "../../python/values/values.ts";
import { productOf } from "./lookups.ts";
import type { RetailDb } from "./model.ts";

const { read } = toolsOf<Side<RetailDb>>();

export const getProductDetails = read({
  name: "get_product_details",
  summary: "Show a product with all its items: their options, prices and whether they are in stock.",
  parameters: { product_id: text("The product's id, such as '6086499569'; an item's id is something else.") },
  run: ({ product_id }, { db }) => productOf(db, product_id),
});

export const getItemDetails = read({
  name: "get_item_details",
  summary: "Show one item: its options, its price and whether it is in stock.",
  parameters: { item_id: text("The item's id, such as '6086499569'; a product's id is something else.") },
  run({ item_id }, { db }) {
    for (const { variants } of attribute(db, "products").values()) {
      const variant = lookup(variants, item_id);
      if (variant !== undefined) return variant;
    }
    throw valueError("Item not found");
  },
});

export const listAllProductTypes = read({
  name: "list_all_product_types",
  summary: "List the products of the store, each name with its product id.",
  details: "There are 50. Of each there are several items, which differ in their options and have ids of their own.",
  parameters: {},
  run(_, { db }) {
    const ids = [...attribute(db, "products").values()].map(({ name, product_id }) => [name, product_id] as const);
    return writeJson(new Dict(ids), { sortKeys: true });
  },
});
