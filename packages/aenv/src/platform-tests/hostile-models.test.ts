import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SOLVES, startRollouts } from "./fixtures/rollouts.ts";

vi.setConfig({ testTimeout: 60_000 });

let world: Awaited<ReturnType<typeof startRollouts>>;
beforeAll(async () => {
  world = await startRollouts();
});
afterAll(() => world?.close());

const MEBIBYTE = Buffer.alloc(1_024 ** 2, "a");

/** Sends until the client leaves. */
function endless(response: ServerResponse, first: string): void {
  response.write(first);
  const send = () => {
    while (!response.destroyed && response.write(MEBIBYTE));
  };
  response.on("drain", send);
  send();
}

const deep = (levels: number) => `{"choices":${"[".repeat(levels)}${"]".repeat(levels)}}`;

/** What a model's endpoint answers, and what the unscored outcome of its episode says. */
const attacks: Readonly<Record<string, readonly [answer: (response: ServerResponse) => void, message: string]>> = {
  "an answer without end": [(response) => endless(response, '{"choices":[{"message":{"content":"'), "larger than 33554432 bytes"],
  "an error without end": [(response) => endless(response.writeHead(400), '{"error":{"message":"'), "answered 400"],
  "100,000 levels of JSON": [(response) => response.end(deep(100_000)), "nested deeper than 200 levels"],
  "200,000 bad choices": [(response) => response.end(JSON.stringify({ choices: Array(200_000).fill(0) })), "choices.0 must be an object"],
};

describe("a hostile model endpoint", () => {
  it.each(Object.entries(attacks))("with %s gets an unscored outcome with a short message", async (_, [answer, message]) => {
    await using endpoint = await serveHostile(answer);
    const result = await world.play(world.rollout(endpoint));
    expect(result.outcome).toMatchObject({ kind: "unscored", cause: "model", message: expect.stringContaining(message) });
    expect(JSON.stringify(result.outcome).length).toBeLessThan(5_000);
  });

  it("does not disturb the rollout of another owner's model", async () => {
    const hostile = Object.values(attacks).map(([answer]) => serveHostile(answer));
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

async function serveHostile(answer: (response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    request.resume();
    response.on("error", () => {});
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
