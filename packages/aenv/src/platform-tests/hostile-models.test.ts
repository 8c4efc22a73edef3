import { scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SOLVES, startRollouts } from "./fixtures/rollouts.ts";
import { hostileModel, modelAttacks } from "./hostile/models.ts";

vi.setConfig({ testTimeout: 60_000 });

let world: Awaited<ReturnType<typeof startRollouts>>;
beforeAll(async () => {
  world = await startRollouts();
});
afterAll(() => world?.close());

describe("a hostile model endpoint", () => {
  it.each(Object.entries(modelAttacks))("with %s gets an unscored outcome with a short message", async (_, [answer, message]) => {
    await using endpoint = await hostileModel(answer);
    const result = await world.play(world.rollout(endpoint));
    expect(result.outcome).toMatchObject({ kind: "unscored", cause: "model", message: expect.stringContaining(message) });
    expect(JSON.stringify(result.outcome).length).toBeLessThan(5_000);
  });

  it("does not disturb the rollout of another owner's model", async () => {
    const hostile = Object.values(modelAttacks).map(([answer]) => hostileModel(answer));
    await using model = await scriptedOpenAi(SOLVES);
    const endpoints = await Promise.all(hostile);
    try {
      const attacked = Promise.all(endpoints.map((endpoint) => world.play(world.rollout(endpoint))));
      expect(await world.play(world.rollout(model))).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
      expect((await attacked).map(({ outcome }) => outcome.kind)).toEqual(endpoints.map(() => "unscored"));
    } finally {
      await Promise.all(endpoints.map((endpoint) => endpoint[Symbol.asyncDispose]()));
    }
  });
});
