import { isPlatformError } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EpisodeChildren } from "../children/episode-children.ts";
import type { SetupContext } from "../definition/definition.ts";
import { EpisodeModels } from "../models/episode-models.ts";
import { EpisodeSandboxes } from "../sandboxes/episode-sandboxes.ts";
import { readSnapshot, writeSnapshot } from "./snapshot.ts";

const context: SetupContext = {
  instanceId: "i",
  task: null,
  seed: 1,
  variables: {},
  args: [],
  ...new EpisodeSandboxes(null, null, "i").for(),
  ...new EpisodeModels(null, "i").for(),
  ...new EpisodeChildren({ host: null, grants: [], instanceId: "i", seed: 1, task: null }).for(),
  signal: new AbortController().signal,
};

async function roundTrip(state: unknown): Promise<unknown> {
  const written = JSON.parse(JSON.stringify(await writeSnapshot({}, state, "e@1")));
  return readSnapshot({}, written, "e@1", context);
}

describe("a snapshot", () => {
  it("restores every plain value", async () => {
    // A key named __proto__ is refused, as any library should.
    const key = fc.string().filter((name) => name !== "__proto__");
    const plain = fc.anything({ key, withMap: true, withSet: true, withDate: true, withBigInt: true, withNullPrototype: false });
    await fc.assert(
      fc.asyncProperty(plain, async (state) => {
        expect(await roundTrip(state)).toEqual(state);
      }),
    );
  });

  it("keeps shared references and cycles", async () => {
    const order = { id: 1 };
    const state: Record<string, unknown> = { first: order, byId: new Map([[1, order]]) };
    state.self = state;
    const back = (await roundTrip(state)) as { first: object; byId: Map<number, object>; self: object };
    expect(back.byId.get(1)).toBe(back.first);
    expect(back.self).toBe(back);
  });

  it("is refused if the state contains code, with its path and the remedy", async () => {
    const state = { shop: { orders: [{ cancel: () => {} }] } };
    const failure = await writeSnapshot({}, state, "e@1").catch((error: unknown) => error);
    expect(isPlatformError(failure, "snapshot.unsupported")).toBe(true);
    expect((failure as Error).message).toMatch(/state\.shop\.orders\[0\]\.cancel .*define snapshot and restore/);
  });

  it("uses the environment's own snapshot and restore if defined", async () => {
    class Shop {
      readonly stock: number;
      constructor(stock: number) {
        this.stock = stock;
      }
    }
    const definition = {
      snapshot: (state: unknown) => ({ stock: (state as Shop).stock }),
      restore: (data: unknown) => new Shop((data as { stock: number }).stock),
    };
    const written = await writeSnapshot(definition, new Shop(4), "e@1");
    expect(await readSnapshot(definition, JSON.parse(JSON.stringify(written)), "e@1", context)).toEqual(new Shop(4));
  });

  it("of another environment, or damaged, is refused", async () => {
    const written = await writeSnapshot({}, { a: 1 }, "e@1");
    await expect(readSnapshot({}, written, "other@1", context)).rejects.toThrow(/it is of environment 'e@1', but this is 'other@1'/);
    await expect(readSnapshot({}, { ...written, data: "[[" }, "e@1", context)).rejects.toMatchObject({ code: "snapshot.invalid" });
    await expect(readSnapshot({}, 5, "e@1", context)).rejects.toMatchObject({ code: "snapshot.invalid" });
  });

  it("made of arbitrary data is refused with a platform error", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (data) => {
        const garbage = { environment: "e@1", format: "graph", data };
        await readSnapshot({}, garbage, "e@1", context).catch((error: unknown) =>
          expect(isPlatformError(error, "snapshot.invalid")).toBe(true),
        );
      }),
    );
  });
});

it("whose references are nested too deeply is refused as the snapshot's fault", async () => {
  const levels = 100_000;
  const data = JSON.stringify(Array.from({ length: levels }, (_, at) => (at === levels - 1 ? 1 : [at + 1])));
  const read = readSnapshot({}, { environment: "e@1", format: "graph", data }, "e@1", context);
  await expect(read).rejects.toMatchObject({ code: "snapshot.invalid", message: expect.stringContaining("nested too deeply") });
});
