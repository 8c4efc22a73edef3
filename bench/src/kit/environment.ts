import { defineEnvironment } from "@aenv/kit";
import * as z from "zod";

const line = z.object({ sku: z.string().min(1), count: z.number().int().min(1).default(1) });
const order = z.object({
  customer: z.string(),
  express: z.boolean().optional(),
  address: z.object({ street: z.string(), city: z.string(), zip: z.string().regex(/^\d{5}$/) }),
  lines: z.array(line).min(1),
});
const receipt = z.object({ id: z.string(), items: z.number(), express: z.boolean(), city: z.string() });

/** The environment of the kit's suite: the tool of all stacks, a richer one, and a state. */
export const environment = defineEnvironment({
  setup: () => ({ sum: 0 }),
  tools: [
    {
      name: "echo",
      description: "Says the text back.",
      input: z.object({ text: z.string() }),
      run: ({ text }) => text,
    },
    {
      name: "place_order",
      description: "Places an order and gives its receipt.",
      input: order,
      output: receipt,
      run: ({ lines, express = false, address }) => {
        let items = 0;
        for (const { count } of lines) items += count;
        return { id: "order-1", items, express, city: address.city };
      },
    },
    {
      name: "add",
      description: "Adds to the instance's sum.",
      input: z.object({ n: z.number() }),
      run: ({ n }, { state }) => {
        state.sum += n;
        return `sum is ${state.sum}`;
      },
    },
  ],
  rewards: [{ name: "sum", score: ({ state }) => state.sum }],
});

interface Order {
  readonly id: string;
  readonly customer: string;
  readonly lines: readonly { readonly sku: string; readonly count: number }[];
  status: "open" | "shipped";
}

/** An environment with a large state: a thousand orders, about 150 KB as JSON. */
export const shop = defineEnvironment({
  setup: () => ({ orders: new Map(Array.from({ length: 1_000 }, (_, n) => [`order-${n}`, makeOrder(n)])) }),
  tools: [
    {
      name: "ship",
      description: "Ships an order.",
      input: z.object({ id: z.string() }),
      run: ({ id }, { state }) => {
        const found = state.orders.get(id);
        if (found === undefined) throw new Error(`there is no order '${id}'`);
        found.status = "shipped";
        return found;
      },
    },
  ],
});

function makeOrder(n: number): Order {
  const lines = Array.from({ length: 3 }, (_, at) => ({ sku: `sku-${(n * 7 + at * 13) % 500}`, count: 1 + ((n + at) % 4) }));
  return { id: `order-${n}`, customer: `customer-${n % 97}`, lines, status: "open" };
}
