import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import { callTool, modernToolCall, resultOf } from "./testing/calls.ts";
import { exchange, openSession } from "./testing/exchange.ts";

const game = defineEnvironment({
  setup: () => ({ moves: 0 }),
  status: ({ state }) => (state.moves === 0 ? Promise.resolve(false) : { done: true, reason: `${state.moves} moves` }),
  tools: [
    { name: "look", run: () => "nothing" },
    { name: "reset", run: (_, { state }) => (state.moves = 0) },
    {
      name: "move",
      input: z.object({ by: z.number() }),
      output: z.object({ moves: z.number() }),
      run: ({ by }, { state }) => {
        state.moves += by;
        return { moves: state.moves };
      },
    },
    {
      name: "trip",
      run: () => {
        throw new Error("tripped");
      },
    },
  ],
});

describe.each([true, false])("the status with the fast path: %s", (useFastPath) => {
  let served: Served;
  let url: string;
  beforeAll(async () => {
    served = await serve(game, { name: "game", version: "1.0.0", port: 0, writeLog: () => {}, useFastPath });
    url = `${served.url}/mcp`;
  });
  afterAll(() => served?.close());

  it("is in the metadata of every result, in a session and without one", async () => {
    for (const options of [{}, { isOdd: true }, { sessionId: await openSession(url, "2025-06-18") }]) {
      await callTool(url, "reset", {}, options);
      expect(await callTool(url, "look", {}, options)).toEqual({
        content: [{ type: "text", text: "nothing" }],
        _meta: { "aenv/status": { done: false, reason: null } },
      });
      const done = { "aenv/status": { done: true, reason: "2 moves" } };
      expect(await callTool(url, "move", { by: 2 }, options)).toMatchObject({ structuredContent: { moves: 2 }, _meta: done });
      expect(await callTool(url, "trip", {}, options)).toMatchObject({ isError: true, _meta: done });
    }
  });

  it("is beside the protocol's own metadata in the 2026 revision", async () => {
    await callTool(url, "reset");
    expect(resultOf(await exchange(url, modernToolCall("move", { by: 3 })))).toMatchObject({
      structuredContent: { moves: 3 },
      _meta: { "aenv/status": { done: true, reason: "3 moves" }, "io.modelcontextprotocol/serverInfo": { name: "game", version: "1.0.0" } },
    });
  });

  it("is not sent for a call that did not run, because its arguments are invalid", async () => {
    const result = await callTool(url, "move", { by: "two" });
    expect([result.isError, result._meta]).toEqual([true, undefined]);
  });
});
