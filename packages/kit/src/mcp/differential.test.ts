import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { serve } from "../serve/serve.ts";
import { parsePlainRequest } from "./message.ts";
import { everyTool, toolNames } from "./testing/environment.ts";
import { exchange, jsonHeaders, openSession } from "./testing/exchange.ts";
import { CORE_TOOLS, servePlain } from "./testing/plain-server.ts";
import { anyRequest, type GeneratedRequest, SESSIONS } from "./testing/requests.ts";

// AENV_FUZZ_RUNS=20000 AENV_FUZZ_SEED=7 sets the number of runs and the seed. A failure prints the seed and the smallest failing request.
const numRuns = Number(process.env.AENV_FUZZ_RUNS ?? 400);
const seed = Number(process.env.AENV_FUZZ_SEED ?? 20_260_728);
const timeout = 30_000 + numRuns * 50;

const identity = { name: "differential", version: "1.2.3" };
const open: AsyncDisposable[] = [];

/** A server, and the sessions that requests may belong to. */
interface Side {
  readonly url: string;
  readonly sessionIds: readonly string[];
}

async function meet(server: AsyncDisposable & { readonly url: string }): Promise<Side> {
  open.push(server);
  const url = `${server.url}/mcp`;
  const sessionIds: string[] = [];
  for (const { version, level } of SESSIONS) {
    const id = await openSession(url, version);
    sessionIds.push(id);
    if (level === null) continue;
    const body = { jsonrpc: "2.0", id: 1, method: "logging/setLevel", params: { level } };
    expect(await exchange(url, { headers: { ...jsonHeaders, "mcp-session-id": id }, body })).toMatchObject({ status: 200 });
  }
  return { url, sessionIds };
}

async function ask(side: Side, { session, headers, body }: GeneratedRequest): Promise<unknown> {
  const sessionId = session === "none" ? null : session === "unknown" ? "no-such-session" : side.sessionIds[session];
  const all = { ...headers, ...(typeof sessionId === "string" && { "mcp-session-id": sessionId }) };
  // Framing and the order of keys aside, the answer is its status and its messages.
  const { status, messages } = await exchange(side.url, { headers: all, body, signal: AbortSignal.timeout(10_000) });
  return { status, messages };
}

async function expectSameAnswers(names: readonly string[], ours: Side, theirs: Side): Promise<void> {
  await fc.assert(
    fc.asyncProperty(anyRequest(names), async (request) => {
      const [own, other] = await Promise.all([ask(ours, request), ask(theirs, request)]);
      if (!isDeepStrictEqual(own, other)) expect(own).toEqual(other);
    }),
    { numRuns, seed },
  );
}

afterAll(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

describe("the fast path", () => {
  it("answers as the SDK does at the same endpoint", { timeout }, async () => {
    const ours = await meet(await serve(everyTool, { ...identity, writeLog: () => {}, port: 0 }));
    const theirs = await meet(await serve(everyTool, { ...identity, writeLog: () => {}, port: 0, useFastPath: false }));
    await expectSameAnswers(toolNames(everyTool), ours, theirs);
  });

  it("answers as a server that uses only the SDK", { timeout }, async () => {
    const core = { ...everyTool, tools: (everyTool.tools ?? []).filter((tool) => CORE_TOOLS.includes(tool.name)) };
    const ours = await meet(await serve(core, { ...identity, writeLog: () => {}, port: 0 }));
    const theirs = await meet(await servePlain(identity));
    await expectSameAnswers(CORE_TOOLS, ours, theirs);
  });
});

describe("the corpus", () => {
  it("has many requests that the fast path answers, and many that it must not", () => {
    const names = toolNames(everyTool);
    const sample = fc.sample(anyRequest(names), { numRuns: 1_000, seed });
    const plain = sample.filter(({ headers, body }) => {
      const request = parsePlainRequest(headers, body);
      return request !== null && (request.method === "tools/list" || names.includes(request.name));
    });
    expect(plain.length).toBeGreaterThan(300);
    expect(plain.length).toBeLessThan(700);
  });
});
