import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RolloutResult, rolloutPage } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { heldModel, ONE_TURN, oracle, resultsOf, startRollouts } from "./fixtures/rollouts.ts";
import { projects, publish, startPlatform } from "./platform.ts";

vi.setConfig({ testTimeout: 30_000 });

let world: Awaited<ReturnType<typeof startRollouts>>;
beforeAll(async () => {
  world = await startRollouts();
});
afterAll(() => world?.close());

describe("an id", () => {
  it("is played once: the same body gets the first result, also while it runs, and another body gets 409", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = world.rollout(model, ONE_TURN);
    const first = world.post({ rollouts: [one] });
    await asked;
    const second = world.post({ rollouts: [one, one] });
    expect((await world.post({ rollouts: [{ ...one, seed: 1 }] })).status).toBe(409);
    expect((await world.post({ rollouts: [one], run: "other" })).status).toBe(409);
    answer();
    const [result] = await resultsOf(await first);
    expect(await resultsOf(await second)).toEqual([result]);
    expect(await resultsOf(await world.post({ rollouts: [one] }))).toEqual([result]);
    expect(model.requests).toHaveLength(1);
  });

  it("belongs to its owner: another owner's is 404, and the same id of another owner is another rollout", async () => {
    const one = world.rollout(null, oracle);
    await world.play(one);
    expect((await world.call("GET", `/rollouts/${one.id}`, world.bob)).status).toBe(404);
    expect((await world.call("DELETE", `/rollouts/${one.id}`, world.bob)).status).toBe(404);
    const [own] = await resultsOf(await world.post({ rollouts: [{ ...one, seed: 5 }] }, world.bob));
    expect(own).toMatchObject({ id: one.id, seed: 5 });
  });

  it("is unknown to a token of its owner that is valid for other environments only: it is not listed, read, joined or cancelled", async () => {
    const scopedTo = async (...scopes: string[]) => {
      const { token } = await world.platform.server.access.tokens.create({ owner: "ada", roles: ["trainer"], scopes });
      return { authorization: `Bearer ${token}` };
    };
    const [other, own] = [await scopedTo("shop", "tau*"), await scopedTo("echo")];
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const run = "scoped";
    const running = world.rollout(model, ONE_TURN);
    const done = world.rollout(null, oracle);
    await resultsOf(await world.post({ rollouts: [done], run }));
    await world.post({ rollouts: [running], run, stream: false });
    await asked;
    for (const { id } of [running, done]) {
      expect((await world.call("GET", `/rollouts/${id}`, other)).status).toBe(404);
      expect((await world.call("DELETE", `/rollouts/${id}`, other)).status).toBe(404);
    }
    expect((await world.post({ rollouts: [done], run }, other)).status).toBe(409);
    const listed = async (headers: { authorization: string }, limit: number) =>
      (await (await world.call("GET", `/rollouts?run=${run}&limit=${limit}`, headers)).json()) as { rollouts: unknown[]; next: unknown };
    expect(await listed(other, 1)).toEqual({ rollouts: [], next: null });
    expect((await listed(own, 10)).rollouts).toHaveLength(2);
    answer();
    expect((await world.call("GET", `/rollouts/${running.id}?wait=30`, own)).status).toBe(200);
  });
});

it("the key of a model is in no file of the server's home soon after its rollouts have ended", async () => {
  const key = "sk-4f1d-key-of-a-model";
  const filesWithKey = () =>
    readdirSync(world.platform.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((file) => existsSync(file) && readFileSync(file).includes(key));
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  // A small row, one that fills pages of its own, and one that is cancelled.
  const rollouts = [{}, { metadata: { long: "x".repeat(20_000) } }, {}].map((own) =>
    world.rollout(model, { ...ONE_TURN, ...own }, { api_key: key }),
  );
  await world.post({ rollouts, stream: false });
  await asked;
  expect(filesWithKey()).not.toEqual([]);
  await world.call("DELETE", `/rollouts/${rollouts[2]?.id}`);
  answer();
  for (const { id } of rollouts) expect((await world.call("GET", `/rollouts/${id}?wait=30`)).status).toBe(200);
  await expect.poll(filesWithKey, { timeout: 20_000 }).toEqual([]);
});

describe("a caller that does not stream", () => {
  it("gets the accepted ids, waits for a result, and lists its run by pages", async () => {
    const rollouts = Array.from({ length: 5 }, () => world.rollout(null, oracle));
    const response = await world.post({ rollouts, run: "run-1", stream: false });
    expect([response.status, await response.json()]).toEqual([202, { accepted: rollouts.map(({ id }) => id) }]);
    for (const { id } of rollouts) {
      const result = await world.call("GET", `/rollouts/${id}?wait=30&fields=outcome,run`);
      expect([result.status, await result.json()]).toEqual([
        200,
        { id, run: "run-1", outcome: expect.objectContaining({ kind: "scored" }) },
      ]);
    }
    const ids: string[] = [];
    for (let after = ""; ; ) {
      const page = await world.call("GET", `/rollouts?run=run-1&limit=2&fields=outcome${after === "" ? "" : `&after=${after}`}`);
      const { rollouts: rows, next } = rolloutPage.parse(await page.json());
      ids.push(...rows.map(({ id }) => id));
      for (const { status, result } of rows) expect([status, result?.outcome?.kind]).toEqual(["done", "scored"]);
      if (next === null) break;
      after = next;
    }
    expect(ids).toEqual(rollouts.map(({ id }) => id).sort());
  });

  it("gets 202 and the status while a rollout runs", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = world.rollout(model, ONE_TURN);
    await world.post({ rollouts: [one], stream: false });
    await asked;
    const response = await world.call("GET", `/rollouts/${one.id}?wait=0`);
    expect([response.status, await response.json()]).toMatchObject([202, { id: one.id, status: "running", attempt: 0 }]);
    answer();
    expect((await world.call("GET", `/rollouts/${one.id}?wait=30`)).status).toBe(200);
  });
});

describe("cancelling", () => {
  it("ends a rollout at once and may be repeated; the stream has its outcome, and its instance ends", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = world.rollout(model, ONE_TURN);
    const streamed = world.post({ rollouts: [one] });
    await asked;
    for (const status of [204, 204]) expect((await world.call("DELETE", `/rollouts/${one.id}`)).status).toBe(status);
    const [result] = await resultsOf(await streamed);
    expect(result).toMatchObject({ outcome: { kind: "unscored", cause: "cancelled" } });
    expect(result?.outcome).not.toHaveProperty("reward");
    answer();
    expect((await world.call("DELETE", "/rollouts/unknown")).status).toBe(404);
    // A rollout that is done keeps its result.
    const done = world.rollout(null, oracle);
    const before = await world.play(done);
    await world.call("DELETE", `/rollouts/${done.id}`);
    expect(await (await world.call("GET", `/rollouts/${done.id}`)).json()).toEqual(before);
  });

  it("is not what a closed stream does", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = world.rollout(model, ONE_TURN);
    const controller = new AbortController();
    const response = await fetch(`${world.platform.controlUrl}/rollouts`, {
      method: "POST",
      headers: { "content-type": "application/json", ...world.ada },
      body: JSON.stringify({ stream: true, rollouts: [one] }),
      signal: controller.signal,
    });
    await asked;
    controller.abort();
    await response.text().catch(() => {});
    answer();
    const result = await world.call("GET", `/rollouts/${one.id}?wait=30`);
    expect(await result.json()).toMatchObject({ outcome: { kind: "scored" } });
  });
});

describe("a stream", () => {
  it("is compressed for a client that accepts gzip, and holds the selected fields only", async () => {
    const rollouts = [world.rollout(null, oracle), world.rollout(null, oracle)];
    const response = await world.post({ rollouts }, { "accept-encoding": "gzip" }, "?fields=outcome,task");
    expect(response.headers.get("content-encoding")).toBe("gzip");
    const results = await resultsOf(response);
    expect(results.map((one) => Object.keys(one).sort())).toEqual([
      ["id", "outcome", "task"],
      ["id", "outcome", "task"],
    ]);
    const plain = await world.call("GET", `/rollouts/${rollouts[0]?.id}`, { "accept-encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBe(null);
    expect((await world.call("GET", `/rollouts/${rollouts[0]?.id}?fields=outcom`)).status).toBe(400);
  });

  it("has events with ids for a client of server-sent events, and goes on after the last one", async () => {
    const rollouts = Array.from({ length: 4 }, () => world.rollout(null, oracle));
    const accept = { accept: "text/event-stream" };
    const response = await world.post({ rollouts }, accept);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = eventsOf(await response.text());
    expect(events.map(({ result }) => result?.id).sort()).toEqual(rollouts.map(({ id }) => id).sort());
    const [first, second, ...rest] = events;
    expect(first?.id).not.toBe(second?.id);
    const resumed = eventsOf(await (await world.post({ rollouts }, { ...accept, "last-event-id": second?.id ?? "" })).text());
    expect(resumed.map(({ result }) => result?.id).sort()).toEqual(rest.map(({ result }) => result?.id).sort());
    expect((await world.post({ rollouts }, { ...accept, "last-event-id": "not one of ours" })).status).toBe(400);
  });
});

describe("a request that cannot be accepted", () => {
  it.each([
    ["an id with a slash", { ...oracle, id: "a/b" }, {}, "id"],
    ["an unknown field", { ...oracle, agnt: {} }, {}, "agnt"],
    ["an agent that is a program", { agent: { kind: "command" } }, {}, "kind"],
    ["sampling that biases the log-probabilities", {}, { tokens: "service", sampling: { top_p: 0.9 } }, "allow_truncated_sampling"],
    ["tokens of an API without any", {}, { tokens: "service", api: "messages" }, "no token ids"],
    ["the metadata address of a cloud", {}, { base_url: "http://169.254.169.254/latest" }, "169.254.169.254"],
    ["the same address in another notation", {}, { base_url: "http://[::ffff:a9fe:a9fe]/v1" }, "169.254.169.254"],
    ["a URL with a password", {}, { base_url: "http://user:pass@127.0.0.1/v1" }, "password"],
    ["a URL with a query", {}, { base_url: "http://127.0.0.1/v1?x=" }, "query"],
    ["a header with two lines", {}, { headers: { "x-a": "1\r\nx-b: 2" } }, "headers"],
  ])("gets 400 for %s, and nothing of it is played", async (_, own, ofModel, says) => {
    const good = world.rollout(null, oracle);
    const response = await world.post({ rollouts: [good, world.rollout({ baseUrl: "http://127.0.0.1:9/v1" }, own, ofModel)] });
    const body = (await response.json()) as { message: string };
    expect([response.status, body.message]).toEqual([400, expect.stringContaining(says)]);
    expect((await world.call("GET", `/rollouts/${good.id}`)).status).toBe(404);
  });

  it("gets 400 for the ports of the server itself, and for a model that is missing", async () => {
    const own = await world.post({ rollouts: [world.rollout({ baseUrl: `${world.platform.controlUrl}/v1` })] });
    expect([own.status, await own.text()]).toEqual([400, expect.stringContaining("this server itself")]);
    expect((await world.post({ rollouts: [world.rollout(null)] })).status).toBe(400);
    expect((await world.post({ rollouts: [] })).status).toBe(400);
  });

  it("gets 401 without a token, 403 with an agent's, 404 for an environment that the caller cannot see", async () => {
    const body = { rollouts: [world.rollout(null, oracle)] };
    expect((await world.post(body, { authorization: "" })).status).toBe(401);
    expect((await world.post(body, world.agent)).status).toBe(403);
    expect((await world.post({ rollouts: [world.rollout(null, { ...oracle, environment: "nope@1.0.0" })] })).status).toBe(404);
  });
});

describe("a server with small limits", () => {
  it("answers 429 with Retry-After to more unfinished rollouts than allowed", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    await using small = await startPlatform({ flags: { maxRollouts: 2 } });
    const ref = await publish(small, projects.echo);
    const send = (body: object) =>
      fetch(`${small.controlUrl}/rollouts`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const make = (id: string) => ({ ...world.rollout(model, ONE_TURN), id, environment: ref });
    expect((await send({ rollouts: [make("a"), make("b"), make("c")] })).status).toBe(429);
    expect((await send({ rollouts: [make("a"), make("b")] })).status).toBe(202);
    await asked;
    const refused = await send({ rollouts: [make("c")] });
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
    // The same ids again are no new rollouts.
    expect((await send({ rollouts: [make("a"), make("b")] })).status).toBe(202);
    answer();
    expect((await fetch(`${small.controlUrl}/rollouts/a?wait=30`)).status).toBe(200);
  });
});

it("answers 429 to requests of more bytes than an owner may have unfinished, with owner, bytes and limit", async () => {
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  await using small = await startPlatform({ flags: { rolloutRequestBytes: 50_000 } });
  const ref = await publish(small, projects.echo);
  const send = async (...ids: string[]) => {
    const rollouts = ids.map((id) => ({ ...world.rollout(model, ONE_TURN), id, environment: ref, metadata: { long: "x".repeat(20_000) } }));
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${small.controlUrl}/rollouts`, { method: "POST", headers, body: JSON.stringify({ rollouts }) });
    return { status: response.status, body: (await response.json()) as { message: string } };
  };
  expect(await send("a", "b", "c")).toMatchObject({ status: 429 });
  expect(await send("a", "b")).toMatchObject({ status: 202 });
  await asked;
  const { status, body } = await send("c");
  // Before: the bytes of requests were not limited.
  expect([status, body.message]).toEqual([429, expect.stringMatching(/'default'.* have 4\d{4} bytes, and 2\d{4} more .* limit of 50000 /)]);
  answer();
  for (const id of ["a", "b"]) expect((await fetch(`${small.controlUrl}/rollouts/${id}?wait=30`)).status).toBe(200);
  expect(await send("c")).toMatchObject({ status: 202 });
});

function eventsOf(text: string): { readonly id: string; readonly result: RolloutResult | null }[] {
  return text.split("\n\n").flatMap((event) => {
    const id = /^id: (.*)$/m.exec(event)?.[1];
    const data = /^data: (.*)$/m.exec(event)?.[1];
    return id === undefined || data === undefined ? [] : [{ id, result: JSON.parse(data) as RolloutResult }];
  });
}
