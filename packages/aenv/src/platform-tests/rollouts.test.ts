import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type RolloutResult, rolloutPage, rolloutResult } from "@aenv/contract";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

vi.setConfig({ testTimeout: 30_000 });

let platform: Platform;
let echo: string;
let ada: { readonly authorization: string };
let bob: { readonly authorization: string };
let agent: { readonly authorization: string };

beforeAll(async () => {
  platform = await startPlatform({ flags: { access: "on", rolloutsAtOnce: 4 } });
  const admin = await platform.token("root", "admin");
  ada = await platform.token("ada", "trainer");
  bob = await platform.token("bob", "trainer");
  agent = await platform.token("eve", "agent");
  echo = await publish(platform, projects.echo, { headers: admin });
  await platform.demand("POST", `/env/${echo.replace("@", "/")}/visibility`, { visibility: "public" }, admin);
});
afterAll(() => platform?.close());

const SOLVES: Script = [{ toolCalls: [{ name: "echo", arguments: { text: "hello" } }] }, "I said hello."];

const call = (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown) =>
  fetch(`${platform.controlUrl}${path}`, {
    method,
    headers: { "content-type": "application/json", ...ada, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
const post = (body: object, headers: Readonly<Record<string, string>> = {}, query = "") =>
  call("POST", `/rollouts${query}`, headers, { stream: true, ...body });

let made = 0;
/** A rollout of the task `greet` with an id of its own. */
function rollout(model: { readonly baseUrl: string } | null, own: Readonly<Record<string, unknown>> = {}, ofModel: object = {}) {
  return {
    id: `r${made++}`,
    environment: echo,
    task: { id: "greet" },
    ...(model !== null && { model: { base_url: model.baseUrl, api_key: "model-secret", name: "m", ...ofModel } }),
    ...own,
  };
}
const oracle = { agent: { kind: "oracle" } } as const;
/** Without a limit, an agent that only talks goes on until its deadline: the environment answers each time. */
const ONE_TURN = { limits: { turns: 1 } } as const;

/** The results of a stream, without pings. */
async function resultsOf(response: Response): Promise<RolloutResult[]> {
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line)).filter((one) => one.type !== "ping");
}

async function play(one: object): Promise<RolloutResult> {
  const [result] = await resultsOf(await post({ rollouts: [one] }));
  return rolloutResult.parse(result);
}

/** A model that answers only when it is told to. */
async function heldModel() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const model = await scriptedOpenAi(async () => {
    asked.resolve();
    await answer.promise;
    return "late";
  });
  return { model, asked: asked.promise, answer: () => answer.resolve() };
}

describe("a rollout", () => {
  it("is played against the caller's model, and its scored result is streamed with tokens", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "sglang", weightVersion: "12" } });
    const group = { id: "g", index: 0, size: 1 };
    const response = await post({ rollouts: [rollout(model, { id: "first", group, metadata: { step: 3 } }, { tokens: "service" })] });
    const [result] = await resultsOf(response);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(rolloutResult.parse(result)).toEqual(result);
    expect(result).toMatchObject({
      id: "first",
      attempt: 0,
      task: { id: "greet", split: "train", index: 0 },
      group,
      outcome: { kind: "scored", reward: 1, components: { said_it: 1, brief: 1 } },
      stop_reason: "done",
      truncated: false,
      num_turns: 2,
      tool_calls: 1,
      capture: "tokens",
      metadata: { step: 3 },
      provenance: { environment: "echo@1.0.0", agent: "openai", model: "m" },
    });
    const [sequence] = result?.sequences ?? [];
    expect(result?.sequences).toHaveLength(1);
    expect(sequence?.turns).toEqual(["n0", "n1"]);
    expect(sequence?.weight_versions.map(({ version }) => version)).toEqual(["12", "12"]);
    expect(sequence?.loss_mask.filter((mask) => mask === 1)).toHaveLength(
      (result?.turns ?? []).reduce((sum, turn) => sum + (turn.completion_token_ids?.length ?? 0), 0),
    );
    expect(model.requests.every(({ stream }) => !stream)).toBe(true);
  });

  it("has two sequences if the second prompt does not begin with the tokens of the first turn", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm", drifts: true } });
    const { capture, sequences } = await play(rollout(model, {}, { tokens: "service" }));
    expect(capture).toBe("tokens");
    expect(sequences.map(({ turns }) => turns)).toEqual([["n0"], ["n1"]]);
  });

  it("plays a task of the trainer's own, if the environment takes such tasks", async () => {
    const given = { inline: { goal: "surprise" } };
    expect(await play(rollout(null, { ...oracle, task: given }))).toMatchObject({
      task: { id: "inline", split: null, index: null, ...given },
      outcome: { kind: "scored", reward: 1 },
    });
    expect(await play(rollout(null, { ...oracle, task: { inline: { goal: 7 } } }))).toMatchObject({
      outcome: { kind: "unscored", cause: "environment", stage: "reset", retryable: false, message: expect.stringContaining("goal") },
    });
  });

  it("is unscored by the model if the service wants tokens and the endpoint returns none", async () => {
    await using model = await scriptedOpenAi(SOLVES);
    const result = await play(rollout(model, { retries: 3 }, { tokens: "service" }));
    expect(result.outcome).toMatchObject({ kind: "unscored", cause: "model", stage: "play", retryable: false });
    expect(result.outcome).not.toHaveProperty("reward");
    expect(result).toMatchObject({ attempt: 0, sequences: [], capture: "text" });
    expect(model.requests).toHaveLength(1);
  });

  it("sends no field that OpenAI does not know and returns no tokens if the trainer records them", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
    const result = await play(rollout(model, { seed: 7 }, { sampling: { temperature: 1, max_tokens: 100 }, extra_body: { x: 1 } }));
    expect(Object.keys(model.requests[0]?.body ?? {}).sort()).toEqual(["max_tokens", "messages", "model", "temperature", "tools", "x"]);
    expect(result).toMatchObject({ capture: "text", sequences: [], outcome: { kind: "scored" } });
    expect(result.turns.every((turn) => turn.prompt_token_ids === null && turn.logprobs === null)).toBe(true);
  });

  it("asks once for tokens where the endpoint may refuse them, and goes on without", async () => {
    await using model = await scriptedOpenAi((request) => {
      if (request.body.return_token_ids === true) return { status: 400, message: "unknown argument return_token_ids" };
      return request.turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "done";
    });
    const first = await play(rollout(model, {}, { tokens: "auto" }));
    const second = await play(rollout(model, {}, { tokens: "auto" }));
    for (const one of [first, second]) expect(one).toMatchObject({ capture: "text", outcome: { kind: "scored", reward: 1 } });
    expect(model.requests.filter(({ body }) => body.return_token_ids === true)).toHaveLength(1);
    await using knows = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
    expect(await play(rollout(knows, {}, { tokens: "auto" }))).toMatchObject({ capture: "tokens" });
  });

  it.each(["chat", "responses", "messages"] as const)("plays a model behind the API '%s'", async (api) => {
    await using model = await scriptedOpenAi(SOLVES);
    const result = await play(rollout(model, {}, { api }));
    expect(result.outcome).toMatchObject({ kind: "scored", reward: 1 });
    expect(model.requests.map((request) => request.api)).toEqual([api, api]);
  });

  it("waits for an endpoint that answers 429 with Retry-After, and does not count that as an attempt", async () => {
    let busy = 3;
    await using model = await scriptedOpenAi(({ turn }) => {
      if (busy-- > 0) return { status: 429, message: "weights are updated", headers: { "retry-after": "0" } };
      return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "done";
    });
    expect(await play(rollout(model, { retries: 0 }))).toMatchObject({ attempt: 0, outcome: { kind: "scored", reward: 1 } });
  });

  it("is played again after a failure that may pass, and is unscored after the last attempt", async () => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request: IncomingMessage, response) => {
      paths.push(request.url);
      response.setHeader("content-type", "application/json").end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const result = await play(rollout({ baseUrl: `http://127.0.0.1:${port}/sessions/ab12` }, { retries: 2 }));
      expect(result).toMatchObject({ attempt: 2, stop_reason: "error", outcome: { kind: "unscored", cause: "model", retryable: true } });
      // The base URL is only appended to: it has no /v1, so the request has none.
      expect(paths).toEqual(Array.from({ length: 3 }, () => "/sessions/ab12/chat/completions"));
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("is unscored by the model if the endpoint cannot be reached, and the message does not hold the caller's key", async () => {
    await using model = await scriptedOpenAi(() => ({ status: 401, message: "wrong key: model-secret" }));
    const { outcome } = await play(rollout(model));
    expect(outcome).toMatchObject({ kind: "unscored", cause: "model", message: expect.stringContaining("wrong key: ***") });
  });

  it("is unscored by the environment if the task does not exist", async () => {
    for (const task of [{ id: "nope" }, { split: "train", index: 99 }, { split: "nope", index: 0 }]) {
      const { outcome } = await play(rollout(null, { ...oracle, task }));
      expect(outcome).toMatchObject({ kind: "unscored", cause: "environment" });
    }
  });

  it("plays a task by its place in a split, and ends at the agent's limits with a score", async () => {
    const found = await play(rollout(null, { ...oracle, task: { split: "test", index: 0 } }));
    expect(found).toMatchObject({ task: { id: "recall", split: "test", index: 0 }, outcome: { kind: "scored", reward: 1 } });
    await using model = await scriptedOpenAi(() => ({ toolCalls: [{ name: "remember", arguments: { name: "a", text: "b" } }] }));
    const limited = await play(rollout(model, { limits: { turns: 2 } }));
    expect(limited).toMatchObject({ stop_reason: "max_turns", truncated: true, num_turns: 2, outcome: { kind: "scored" } });
  });
});

describe("an id", () => {
  it("is played once: the same body gets the first result, also while it runs, and another body gets 409", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = rollout(model, ONE_TURN);
    const first = post({ rollouts: [one] });
    await asked;
    const second = post({ rollouts: [one, one] });
    expect((await post({ rollouts: [{ ...one, seed: 1 }] })).status).toBe(409);
    expect((await post({ rollouts: [one], run: "other" })).status).toBe(409);
    answer();
    const [result] = await resultsOf(await first);
    expect(await resultsOf(await second)).toEqual([result]);
    expect(await resultsOf(await post({ rollouts: [one] }))).toEqual([result]);
    expect(model.requests).toHaveLength(1);
  });

  it("belongs to its owner: another owner's is 404, and the same id of another owner is another rollout", async () => {
    const one = rollout(null, oracle);
    await play(one);
    expect((await call("GET", `/rollouts/${one.id}`, bob)).status).toBe(404);
    expect((await call("DELETE", `/rollouts/${one.id}`, bob)).status).toBe(404);
    const [own] = await resultsOf(await post({ rollouts: [{ ...one, seed: 5 }] }, bob));
    expect(own).toMatchObject({ id: one.id, seed: 5 });
  });
});

describe("a caller that does not stream", () => {
  it("gets the accepted ids, waits for a result, and lists its run by pages", async () => {
    const rollouts = Array.from({ length: 5 }, () => rollout(null, oracle));
    const response = await post({ rollouts, run: "run-1", stream: false });
    expect([response.status, await response.json()]).toEqual([202, { accepted: rollouts.map(({ id }) => id) }]);
    for (const { id } of rollouts) {
      const result = await call("GET", `/rollouts/${id}?wait=30&fields=outcome,run`);
      expect([result.status, await result.json()]).toEqual([
        200,
        { id, run: "run-1", outcome: expect.objectContaining({ kind: "scored" }) },
      ]);
    }
    const ids: string[] = [];
    for (let after = ""; ; ) {
      const page = await call("GET", `/rollouts?run=run-1&limit=2&fields=outcome${after === "" ? "" : `&after=${after}`}`);
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
    const one = rollout(model, ONE_TURN);
    await post({ rollouts: [one], stream: false });
    await asked;
    const response = await call("GET", `/rollouts/${one.id}?wait=0`);
    expect([response.status, await response.json()]).toMatchObject([202, { id: one.id, status: "running", attempt: 0 }]);
    answer();
    expect((await call("GET", `/rollouts/${one.id}?wait=30`)).status).toBe(200);
  });
});

describe("cancelling", () => {
  it("ends a rollout at once and may be repeated; the stream has its outcome, and its instance ends", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = rollout(model, ONE_TURN);
    const streamed = post({ rollouts: [one] });
    await asked;
    for (const status of [204, 204]) expect((await call("DELETE", `/rollouts/${one.id}`)).status).toBe(status);
    const [result] = await resultsOf(await streamed);
    expect(result).toMatchObject({ outcome: { kind: "unscored", cause: "cancelled" } });
    expect(result?.outcome).not.toHaveProperty("reward");
    answer();
    expect((await call("DELETE", "/rollouts/unknown")).status).toBe(404);
    // A rollout that is done keeps its result.
    const done = rollout(null, oracle);
    const before = await play(done);
    await call("DELETE", `/rollouts/${done.id}`);
    expect(await (await call("GET", `/rollouts/${done.id}`)).json()).toEqual(before);
  });

  it("is not what a closed stream does", async () => {
    const { model, asked, answer } = await heldModel();
    await using _ = model;
    const one = rollout(model, ONE_TURN);
    const controller = new AbortController();
    const response = await fetch(`${platform.controlUrl}/rollouts`, {
      method: "POST",
      headers: { "content-type": "application/json", ...ada },
      body: JSON.stringify({ stream: true, rollouts: [one] }),
      signal: controller.signal,
    });
    await asked;
    controller.abort();
    await response.text().catch(() => {});
    answer();
    const result = await call("GET", `/rollouts/${one.id}?wait=30`);
    expect(await result.json()).toMatchObject({ outcome: { kind: "scored" } });
  });
});

describe("a stream", () => {
  it("is compressed for a client that accepts gzip, and holds the selected fields only", async () => {
    const rollouts = [rollout(null, oracle), rollout(null, oracle)];
    const response = await post({ rollouts }, { "accept-encoding": "gzip" }, "?fields=outcome,task");
    expect(response.headers.get("content-encoding")).toBe("gzip");
    const results = await resultsOf(response);
    expect(results.map((one) => Object.keys(one).sort())).toEqual([
      ["id", "outcome", "task"],
      ["id", "outcome", "task"],
    ]);
    const plain = await call("GET", `/rollouts/${rollouts[0]?.id}`, { "accept-encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBe(null);
    expect((await call("GET", `/rollouts/${rollouts[0]?.id}?fields=outcom`)).status).toBe(400);
  });

  it("has events with ids for a client of server-sent events, and goes on after the last one", async () => {
    const rollouts = Array.from({ length: 4 }, () => rollout(null, oracle));
    const accept = { accept: "text/event-stream" };
    const response = await post({ rollouts }, accept);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = eventsOf(await response.text());
    expect(events.map(({ result }) => result?.id).sort()).toEqual(rollouts.map(({ id }) => id).sort());
    const [first, second, ...rest] = events;
    expect(first?.id).not.toBe(second?.id);
    const resumed = eventsOf(await (await post({ rollouts }, { ...accept, "last-event-id": second?.id ?? "" })).text());
    expect(resumed.map(({ result }) => result?.id).sort()).toEqual(rest.map(({ result }) => result?.id).sort());
    expect((await post({ rollouts }, { ...accept, "last-event-id": "not one of ours" })).status).toBe(400);
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
    const good = rollout(null, oracle);
    const response = await post({ rollouts: [good, rollout({ baseUrl: "http://127.0.0.1:9/v1" }, own, ofModel)] });
    const body = (await response.json()) as { message: string };
    expect([response.status, body.message]).toEqual([400, expect.stringContaining(says)]);
    expect((await call("GET", `/rollouts/${good.id}`)).status).toBe(404);
  });

  it("gets 400 for the ports of the server itself, and for a model that is missing", async () => {
    const own = await post({ rollouts: [rollout({ baseUrl: `${platform.controlUrl}/v1` })] });
    expect([own.status, await own.text()]).toEqual([400, expect.stringContaining("this server itself")]);
    expect((await post({ rollouts: [rollout(null)] })).status).toBe(400);
    expect((await post({ rollouts: [] })).status).toBe(400);
  });

  it("gets 401 without a token, 403 with an agent's, 404 for an environment that the caller cannot see", async () => {
    const body = { rollouts: [rollout(null, oracle)] };
    expect((await post(body, { authorization: "" })).status).toBe(401);
    expect((await post(body, agent)).status).toBe(403);
    expect((await post({ rollouts: [rollout(null, { ...oracle, environment: "nope@1.0.0" })] })).status).toBe(404);
  });
});

it("accepts biased sampling if the caller says so", async () => {
  await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
  const own = { tokens: "service", sampling: { top_p: 0.9 }, allow_truncated_sampling: true };
  expect(await play(rollout(model, {}, own))).toMatchObject({ capture: "tokens", provenance: { sampling: { top_p: 0.9 } } });
});

it("waits for an instance at the owner's limit of instances, and a revoked token ends what is played with it", async () => {
  const { token, row } = await platform.server.access.tokens.create({ owner: "carl", roles: ["trainer"], maxInstances: 1 });
  const carl = { authorization: `Bearer ${token}` };
  const results = await resultsOf(await post({ rollouts: Array.from({ length: 4 }, () => rollout(null, oracle)) }, carl));
  expect(results.map(({ outcome }) => outcome.kind)).toEqual(["scored", "scored", "scored", "scored"]);
  const again = await platform.token("carl", "trainer");
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  // Other variables need another instance, which the revoked token can no longer create.
  const late = rollout(model, { ...ONE_TURN, retries: 0, variables: { LATE: "yes" } });
  const first = rollout(model, { ...ONE_TURN, id: "holds-the-instance" });
  await post({ rollouts: [first, late], stream: false }, carl);
  await asked;
  await platform.server.access.tokens.revoke(row.id);
  answer();
  const response = await call("GET", `/rollouts/${late.id}?wait=30`, again);
  expect(await response.json()).toMatchObject({ outcome: { kind: "unscored", cause: "sandbox", stage: "start" } });
});

it("plays many rollouts on few instances", async () => {
  const rollouts = Array.from({ length: 40 }, () => rollout(null, oracle));
  const results = await resultsOf(await post({ rollouts }));
  expect(results.filter(({ outcome }) => outcome.kind === "scored" && outcome.reward === 1)).toHaveLength(40);
  const { items } = (await platform.demand("GET", "/env-instance/list?status=Running&limit=1000", undefined, ada)) as { items: unknown[] };
  expect(items.length).toBeLessThanOrEqual(8);
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
    const make = (id: string) => ({ ...rollout(model, ONE_TURN), id, environment: ref });
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

function eventsOf(text: string): { readonly id: string; readonly result: RolloutResult | null }[] {
  return text.split("\n\n").flatMap((event) => {
    const id = /^id: (.*)$/m.exec(event)?.[1];
    const data = /^data: (.*)$/m.exec(event)?.[1];
    return id === undefined || data === undefined ? [] : [{ id, result: JSON.parse(data) as RolloutResult }];
  });
}
