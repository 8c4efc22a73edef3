import { defineEnvironment, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { z } from "zod";

/** Tools to cancel an order and to search with nested optional filters, one that fails, and one that is slow. */
const shop = defineEnvironment({
  setup: () => ({ cancelled: [] as string[], dawdling: Promise.withResolvers<void>(), interrupted: Promise.withResolvers<void>() }),
  tools: [
    {
      name: "orders.cancel",
      description: "Cancels an order.",
      input: z.object({ id: z.string() }),
      run: ({ id }, { state }) => {
        state.cancelled.push(id);
        return `cancelled ${id}`;
      },
    },
    {
      name: "orders-find",
      description: "Finds orders.",
      input: z.object({
        filter: z.object({
          status: z.enum(["open", "sent"]).default("open"),
          price: z.object({ min: z.number().optional(), max: z.number().optional() }).describe("In cents."),
          tags: z.array(z.string()).optional(),
        }),
        limit: z.int().min(1).default(10),
      }),
      run: (query) => query,
    },
    {
      name: "open_till",
      description: "Opens the till.",
      run: () => {
        throw new Error("the till is stuck");
      },
    },
    {
      name: "dawdle",
      description: "Takes for ever.",
      run: (_, { state, signal }) => {
        state.dawdling.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            state.interrupted.resolve();
            reject(signal.reason);
          });
        });
      },
    },
  ],
  functions: [
    { name: "cancelled", run: (_, { state }) => state.cancelled },
    { name: "dawdling", run: (_, { state }) => state.dawdling.promise },
    { name: "interrupted", run: (_, { state }) => state.interrupted.promise.then(() => true) },
  ],
});

/** The shop served over HTTP, and the SDK's environment for it. */
export async function openShop() {
  const served = await serve(shop, { name: "shop", version: "1.0.0", port: 0 });
  const env = new Environment("shop@1.0.0", { instanceUrl: served.url, maxRetries: 0 });
  return {
    env,
    /** Stops the server while the SDK's environment is open. */
    lose: () => served.close(),
    async [Symbol.asyncDispose]() {
      await env.release();
      await served.close();
    },
  };
}
