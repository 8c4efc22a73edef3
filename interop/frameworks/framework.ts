import type { ToolSource } from "@aenv/sdk";
import { describeNeeding, type ScriptedTurn, scriptedOpenAi } from "@aenv/testing";
import { afterAll, describe, expect, it } from "vitest";
import { watchNetwork } from "./quiet.ts";
import { openShop } from "./shop.ts";

/** The inputs of one run of the framework's tool loop. */
export interface Visit {
  readonly env: ToolSource;
  /** The scripted model's address. */
  readonly baseUrl: string;
  /** Whether the framework requests a stream from the model. */
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

export interface Framework {
  /** Runs the framework's own tool loop until the model calls no more tools; returns the model's last text. */
  run(visit: Visit): Promise<string>;
  /** How the framework changes valid tool names; not at all if absent. */
  rename?(name: string): string;
  /** What it does when the environment cannot be reached: most end the run, some pass the error to the model and continue. */
  readonly whenLost: "ends the run" | "tells the model";
}

/** The tests of every framework, with the tools of a served environment and a scripted model. */
export function describeFramework(title: string, { run, rename = (name) => name, whenLost }: Framework): void {
  const talk: readonly ScriptedTurn[] = [
    { toolCalls: [{ name: "orders_cancel", arguments: { id: "42" } }] },
    {
      text: "One moment.",
      toolCalls: [{ name: rename("orders-find"), arguments: { filter: { price: { max: 500 } } } }, { name: "open_till" }],
    },
    "Order 42 is cancelled.",
  ];
  const signal = new AbortController().signal;

  describeNeeding("frameworks", title, () => {
    const network = watchNetwork();
    afterAll(() => network.stop());

    describe.each([
      { stream: false, how: "without a stream" },
      { stream: true, how: "with a stream" },
    ])("$how", ({ stream }) => {
      it("offers the tools under valid names, with unchanged schemas and not strict", async () => {
        await using model = await scriptedOpenAi(["Hello."]);
        await using shop = await openShop();
        expect(await run({ env: shop.env, baseUrl: model.baseUrl, stream, signal })).toBe("Hello.");
        const names = ["orders_cancel", rename("orders-find"), "open_till", "dawdle"];
        const tools = (await shop.env.listTools()).map(({ description, inputSchema }, index) => ({
          name: names[index],
          description,
          parameters: withoutDialect(inputSchema),
          strict: false,
        }));
        const offered = model.requests[0]?.tools.map(({ name, description, parameters, strict = false }) => ({
          name,
          description,
          parameters: withoutDialect(parameters),
          strict,
        }));
        expect(offered).toEqual(tools);
        expect(model.requests[0]?.stream).toBe(stream);
      });

      it("runs calls with nested and optional arguments, passes failures to the model, and ends with its answer", async () => {
        await using model = await scriptedOpenAi(talk);
        await using shop = await openShop();
        expect(await run({ env: shop.env, baseUrl: model.baseUrl, stream, signal })).toBe("Order 42 is cancelled.");
        expect(await shop.env.callFunction("cancelled", {})).toEqual(["42"]);
        expect(model.refusals).toEqual([]);
        expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", text: "cancelled 42" });
        const [found, failed] = model.requests[2]?.messages.slice(-2) ?? [];
        expect(JSON.parse(found?.text ?? "")).toEqual({ filter: { status: "open", price: { max: 500 } }, limit: 10 });
        expect(failed).toMatchObject({ role: "tool", text: expect.stringMatching(/^Error: .*the till is stuck/) });
      });
    });

    it("stops the tool when the run is aborted", async () => {
      await using model = await scriptedOpenAi([{ toolCalls: [{ name: "dawdle" }] }, "Never said."]);
      await using shop = await openShop();
      const abort = new AbortController();
      const visit = run({ env: shop.env, baseUrl: model.baseUrl, stream: false, signal: abort.signal }).then(
        (answer) => answer,
        () => "aborted",
      );
      await shop.env.callFunction("dawdling", {});
      abort.abort();
      expect(await shop.env.callFunction("interrupted", {})).toBe(true);
      expect(await visit).not.toBe("Never said.");
    });

    it(`${whenLost} when the environment is lost`, async () => {
      await using shop = await openShop();
      await using model = await scriptedOpenAi(async ({ turn }) => {
        if (turn > 0) return "So be it.";
        await shop.lose();
        return { toolCalls: [{ name: "orders_cancel", arguments: { id: "42" } }] };
      });
      const visit = run({ env: shop.env, baseUrl: model.baseUrl, stream: false, signal });
      if (whenLost === "ends the run") {
        await expect(visit).rejects.toThrow("orders.cancel");
      } else {
        expect(await visit).toBe("So be it.");
        expect(model.requests[1]?.messages.at(-1)?.text).toContain("orders.cancel");
      }
    });

    it("connects only to the model and the environment", () => {
      expect(network.outside).toEqual([]);
    });
  });
}

/** Ignores `$schema`, which some frameworks replace and models do not use. */
function withoutDialect({ $schema: _, ...schema }: Readonly<Record<string, unknown>> = {}): object {
  return schema;
}
