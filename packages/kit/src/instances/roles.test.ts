import { type CallToolResult, STATUS_META } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { callTool, toolCall } from "../mcp/testing/calls.ts";
import { exchange, jsonHeaders } from "../mcp/testing/exchange.ts";
import { type Served, serve } from "../serve/serve.ts";

type Side = "white" | "black";
interface Count {
  total: number;
  next: Side | null;
  readonly secrets: Record<string, number>;
  loser: string | null;
}

/** Both add in turn; whoever reaches 5 wins. Each sees the total and its own secret. */
const counting = {
  roles: { white: {}, black: { description: "adds second" } },
  setup: (): Count => ({ total: 0, next: "white", secrets: { white: 1, black: 2 }, loser: null }),
  turnOf: ({ state }: { state: Count }) => (state.next === null ? [] : [state.next]),
  observe: ({ state, role }: { state: Count; role: string | null }) => ({ total: state.total, secret: state.secrets[role ?? ""] ?? null }),
  prompt: ({ role, state }: { state: Count; role: string | null }) => `You are ${role}, your secret is ${state.secrets[role ?? ""]}.`,
  oracle: ({ role }: { role: string | null }) => [{ tool: "add", arguments: { n: role === "white" ? 1 : 2 } }],
  tools: [
    {
      name: "add",
      input: z.object({ n: z.number().int() }),
      run: async ({ n }: { n: number }, { state, role }: { state: Count; role: string | null }) => {
        await Promise.resolve();
        if (n < 1) throw new Error("add at least one");
        state.total += n;
        state.next = state.total >= 5 ? null : role === "white" ? "black" : "white";
        if (state.next === null) state.loser = role === "white" ? "black" : "white";
        return `now ${state.total}`;
      },
    },
    { name: "look", outOfTurn: true, run: (_: unknown, { state, role }: { state: Count; role: string }) => state.secrets[role] },
  ],
  rewards: [{ name: "won", score: ({ state, role }: { state: Count; role: string | null }) => (state.loser === role ? -1 : 1) }],
};
const counter = defineEnvironment(counting as never) as EnvironmentDefinition;

/** Both choose at once. */
const choosing = {
  roles: { white: {}, black: {} },
  setup: (): { rounds: object[] } => ({ rounds: [] }),
  turnOf: ({ state }: { state: { rounds: object[] } }) => (state.rounds.length === 2 ? [] : ["white", "black"]),
  observe: ({ state }: { state: { rounds: object[] } }) => state.rounds,
  tools: [
    {
      name: "choose",
      input: z.object({ hand: z.string() }),
      run: ({ hand }: { hand: string }) => {
        if (hand === "well") throw new Error("no such hand");
        return hand;
      },
    },
  ],
  resolve: (actions: object, state: { rounds: object[] }) => void state.rounds.push(actions),
  rewards: [{ name: "rounds", score: ({ state }: { state: { rounds: object[] } }) => state.rounds.length }],
};

const open: Served[] = [];
afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

async function start(environment: unknown, options: { useFastPath?: boolean } = {}): Promise<Served> {
  const served = await serve(environment as EnvironmentDefinition, { name: "game", port: 0, writeLog: () => {}, ...options });
  open.push(served);
  return served;
}

const at = ({ url }: Served, role: string, id = "default") => `${url}/env-instance/${id}/role/${role}/mcp`;
const textOf = ({ content }: CallToolResult) => content.map((one) => one.text).join("");
const waitOf = (url: string, seconds: number) => callTool(url, "wait_for_turn", { timeout_s: seconds });

async function ask(served: Served, method: string, path: string, body?: object, id = "default"): Promise<{ status: number; data: never }> {
  const response = await fetch(`${served.url}/env-instance/${id}${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  const text = await response.text();
  return { status: response.status, data: (text.startsWith("{") ? (JSON.parse(text).data ?? JSON.parse(text)) : text) as never };
}

describe("roles in turn", () => {
  it("lets each role act in its turn only, and says whose turn it is", async () => {
    const served = await start(counter);
    const early = await callTool(at(served, "black"), "add", { n: 1 });
    expect([textOf(early), early.isError]).toEqual(["it is white's turn", true]);
    const moved = await callTool(at(served, "white"), "add", { n: 2 });
    expect(moved._meta).toEqual({ [STATUS_META]: { done: false, reason: null, turn: ["black"] } });
    expect(textOf(await callTool(at(served, "white"), "add", { n: 2 }))).toBe("it is black's turn");
    await callTool(at(served, "black"), "add", { n: 3 });
    expect((await ask(served, "GET", "/episode/status")).data).toEqual({ done: true, reason: null, turn: [] });
    expect(textOf(await callTool(at(served, "white"), "add", { n: 2 }))).toBe("the episode is over");
    expect((await ask(served, "POST", "/task/reward", {})).data).toEqual({
      reward: 0,
      components: { white: -1, black: 1 },
      roles: {
        white: { outcome: { kind: "scored", reward: -1, components: { won: -1 }, weights: { won: 1 } } },
        black: { outcome: { kind: "scored", reward: 1, components: { won: 1 }, weights: { won: 1 } } },
      },
    });
  });

  it("lets no role act twice in one turn, however many calls it sends at once", async () => {
    const served = await start(counter);
    const all = await Promise.all(Array.from({ length: 5 }, () => callTool(at(served, "white"), "add", { n: 1 })));
    expect(all.filter(({ isError }) => isError !== true).length).toBe(1);
    expect(all.filter((one) => textOf(one) === "it is black's turn").length).toBe(4);
  });

  it("answers the same through the MCP SDK, also for arguments that its schema refuses", async () => {
    const [fast, slow] = [await start(counter), await start(counter, { useFastPath: false })];
    for (const [role, args] of [
      ["black", { n: 1 }],
      ["black", {}],
      ["white", {}],
      ["white", { n: 0 }],
      ["white", { n: 2 }],
    ] as const)
      expect(await callTool(at(slow, role), "add", args)).toEqual(await callTool(at(fast, role), "add", args));
  });

  it("wakes an agent that waits as soon as its turn comes, and when the episode is over", async () => {
    const served = await start(counter);
    const waiting = waitOf(at(served, "black"), 60);
    expect((await waitOf(at(served, "black"), 0)).structuredContent).toEqual({
      your_turn: false,
      over: false,
      observation: { total: 0, secret: 2 },
    });
    await callTool(at(served, "white"), "add", { n: 2 });
    expect((await waiting).structuredContent).toEqual({ your_turn: true, over: false, observation: { total: 2, secret: 2 } });
    const last = waitOf(at(served, "white"), 60);
    await callTool(at(served, "black"), "add", { n: 3 });
    expect((await last).structuredContent).toMatchObject({ your_turn: false, over: true });
  });

  it("ends the waits of an episode that is reset", async () => {
    const served = await start(counter);
    const waiting = waitOf(at(served, "black"), 60);
    await waitOf(at(served, "black"), 0);
    await ask(served, "POST", "/task/reset", {});
    expect((await waiting).isError).toBe(true);
  });

  it("answers those that wait when the server is closed, which takes no longer for them", async () => {
    const served = await start(counter);
    const waiting = waitOf(at(served, "black"), 60);
    await waitOf(at(served, "black"), 0);
    const from = performance.now();
    await served.close();
    expect((await waiting).structuredContent).toMatchObject({ your_turn: false, over: false });
    expect(performance.now() - from).toBeLessThan(8_000);
  });

  it("refuses more than 16 waits of one role at once", async () => {
    const served = await start(counter);
    const waits = Array.from({ length: 16 }, () => waitOf(at(served, "black"), 60));
    let refused = await waitOf(at(served, "black"), 0);
    while (refused.isError !== true) refused = await waitOf(at(served, "black"), 0);
    expect(textOf(refused)).toMatch(/^16 calls of wait_for_turn run already/);
    await callTool(at(served, "white"), "add", { n: 1 });
    for (const wait of waits) expect((await wait).structuredContent).toMatchObject({ your_turn: true });
  });

  it("gives each role its own prompt, view, oracle and tools, and tells nobody without a role anything", async () => {
    const served = await start(counter);
    expect((await ask(served, "GET", "/episode/prompt?role=black")).data).toEqual({
      messages: [{ role: "user", content: "You are black, your secret is 2." }],
    });
    expect((await ask(served, "GET", "/episode/oracle?role=black")).data).toEqual({ actions: [{ tool: "add", arguments: { n: 2 } }] });
    expect((await ask(served, "POST", "/task/reset", {})).data).toMatchObject({
      observation: { white: { total: 0, secret: 1 }, black: { total: 0, secret: 2 } },
    });
    expect((await ask(served, "GET", "/episode")).data).toMatchObject({ roles: { white: {}, black: { description: "adds second" } } });
    for (const path of ["/episode/prompt", "/episode/oracle"]) expect((await ask(served, "GET", path)).status).toBe(400);
    expect((await ask(served, "GET", "/episode/prompt?role=red")).status).toBe(404);
    const bare = await exchange(`${served.url}/mcp`, toolCall("look"));
    expect([bare.status, bare.text]).toEqual([400, expect.stringContaining("has the roles white, black")]);
  });

  it("has no way from the session of one role into that of another", async () => {
    const served = await start(counter);
    const begin = {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
    };
    const opened = await fetch(at(served, "white"), { method: "POST", headers: jsonHeaders, body: JSON.stringify(begin) });
    const session = opened.headers.get("mcp-session-id") ?? "";
    await opened.text();
    const request = (role: string) =>
      fetch(at(served, role), {
        method: "POST",
        headers: { ...jsonHeaders, "mcp-session-id": session },
        body: JSON.stringify(toolCall("look").body),
      });
    expect((await request("white")).status).toBe(200);
    expect((await request("black")).status).toBe(404);
  });

  it("speaks no A2A, whose tasks and card would be the same for all roles", async () => {
    const served = await start(counter);
    const list = { jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} };
    expect((await ask(served, "POST", "/a2a", list)).status).toBe(501);
    for (const path of ["/a2a/tasks", "/.well-known/agent-card.json"]) expect((await ask(served, "GET", path)).status).toBe(501);
    for (const path of ["/role/white/a2a", "/role/white/.well-known/agent-card.json"]) {
      const { status } = await ask(served, "GET", path);
      expect([path, status]).toEqual([path, 404]);
    }
  });

  it("takes words only in turn, and a message to an environment without reply is an invalid move", async () => {
    const served = await start({ ...counting, roles: { white: { maxInvalidMoves: 1 }, black: {} } });
    const say = (role?: string) =>
      ask(served, "POST", "/episode/reply", { message: { role: "assistant", content: "hm" }, ...(role && { role }) });
    expect((await say()).status).toBe(400);
    expect((await say("black")).data).toMatchObject({ messages: [{ content: "it is white's turn" }], status: { done: false } });
    expect((await say("white")).data).toMatchObject({
      messages: [{ content: "it is your turn: call one of your tools" }],
      status: { done: false },
    });
    expect((await say("white")).data).toMatchObject({ status: { done: true, reason: "white has made more than 1 invalid moves" } });
  });
});

describe("roles that act at once", () => {
  it("lets an action wait for the others, and resolves them together", async () => {
    const served = await start(choosing);
    const first = await callTool(at(served, "white"), "choose", { hand: "rock" });
    expect(first.structuredContent).toEqual({ waiting: ["black"] });
    expect(textOf(await callTool(at(served, "white"), "choose", { hand: "paper" }))).toBe("you have acted; wait for black");
    expect(textOf(await callTool(at(served, "black"), "choose", { hand: "well" }))).toBe("no such hand");
    const second = await callTool(at(served, "black"), "choose", { hand: "paper" });
    expect(second.structuredContent).toEqual({ waiting: [], observation: [{ white: "rock", black: "paper" }] });
    expect((await ask(served, "GET", "/episode/status")).data).toMatchObject({ turn: ["white", "black"] });
  });

  it("keeps an action that waits in snapshots, forks and digests", async () => {
    const served = await start(choosing);
    const before = (await ask(served, "GET", "/state/digest")).data;
    await callTool(at(served, "white"), "choose", { hand: "rock" });
    const waiting = (await ask(served, "GET", "/state/digest")).data;
    expect(waiting).not.toEqual(before);
    const snapshot = (await ask(served, "POST", "/state/snapshot")).data;
    const [fork] = await served.host.fork("default", ["copy"]);
    for (const id of ["default", fork?.id ?? ""]) {
      expect((await ask(served, "GET", "/state/digest", undefined, id)).data).toEqual(waiting);
      const done = await callTool(at(served, "black", id), "choose", { hand: "paper" });
      expect(done.structuredContent).toMatchObject({ observation: [{ white: "rock", black: "paper" }] });
    }
    await ask(served, "POST", "/state/restore", { snapshot });
    expect((await ask(served, "GET", "/episode/status")).data).toMatchObject({ turn: ["black"] });
    expect((await ask(served, "GET", "/state/digest")).data).toEqual(waiting);
    const foreign = { ...(snapshot as object), turns: { ...(snapshot as { turns: object }).turns, waiting: { red: 1 } } };
    expect((await ask(served, "POST", "/state/restore", { snapshot: foreign })).status).toBe(400);
  });

  it("gives a failure of resolve to the last role that acted, which may act again", async () => {
    let fails = true;
    const served = await start({
      ...choosing,
      resolve: (actions: object, state: { rounds: object[] }) => {
        if (fails) throw new Error("the dealer fell asleep");
        state.rounds.push(actions);
      },
    });
    await callTool(at(served, "white"), "choose", { hand: "rock" });
    expect(textOf(await callTool(at(served, "black"), "choose", { hand: "rock" }))).toBe("the dealer fell asleep");
    fails = false;
    expect((await callTool(at(served, "black"), "choose", { hand: "rock" })).structuredContent).toMatchObject({ waiting: [] });
  });
});

describe("a role that gives up", () => {
  const late = { white: { turnTimeoutMs: 30 }, black: {} };

  it("loses by the environment's forfeit when its turn takes too long, and all are scored", async () => {
    const served = await start({
      ...counting,
      roles: late,
      forfeit: (state: Count, role: string, reason: string) => {
        expect(reason).toBe("time");
        Object.assign(state, { next: null, loser: role });
      },
    });
    expect((await waitOf(at(served, "black"), 60)).structuredContent).toMatchObject({ over: true });
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({ reward: 0, components: { white: -1, black: 1 } });
  });

  it("is unscored without forfeit, and so are the others", async () => {
    const served = await start({ ...counting, roles: late });
    await waitOf(at(served, "black"), 60);
    const timeout = { kind: "unscored", cause: "timeout", stage: "play", retryable: false };
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({
      reward: null,
      components: {},
      roles: { white: { outcome: timeout }, black: { outcome: timeout } },
    });
    expect(textOf(await callTool(at(served, "white"), "add", { n: 1 }))).toBe(
      "you cannot act any more: white has taken longer than 30 ms for a turn",
    );
  });

  it("leaves the others scored where the environment says so", async () => {
    const served = await start({ ...counting, roles: late, scoresOthers: true });
    await waitOf(at(served, "black"), 60);
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({
      reward: null,
      components: { black: 1 },
      roles: { white: { outcome: { kind: "unscored", cause: "timeout" } }, black: { outcome: { kind: "scored", reward: 1 } } },
    });
  });

  it("gives up by more invalid moves than it may make, of which calls out of turn are none", async () => {
    const served = await start({ ...counting, roles: { white: { maxInvalidMoves: 1 }, black: { maxInvalidMoves: 0 } } });
    await callTool(at(served, "black"), "add", { n: 0 });
    await callTool(at(served, "white"), "add", {});
    expect((await ask(served, "GET", "/episode/status")).data).toMatchObject({ done: false });
    await callTool(at(served, "white"), "add", { n: 0 });
    expect((await ask(served, "GET", "/episode/status")).data).toMatchObject({ done: true, turn: [] });
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({ roles: { white: { outcome: { cause: "agent" } } } });
  });

  it("gives up when the trainer says so, but not after the end", async () => {
    const forfeit = (state: Count, role: string) => void Object.assign(state, { next: null, loser: role });
    const served = await start({ ...counting, forfeit });
    expect((await ask(served, "POST", "/role/white/forfeit", {})).data).toEqual({ forfeited: true });
    expect((await ask(served, "POST", "/role/black/forfeit", { reason: "time" })).data).toEqual({ forfeited: false });
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({ components: { white: -1, black: 1 } });
    expect((await ask(served, "POST", "/role/red/forfeit", {})).status).toBe(404);
  });

  it("does not hold up a round of the others, once the environment has decided", async () => {
    const served = await start({ ...choosing, forfeit: () => {} });
    await callTool(at(served, "white"), "choose", { hand: "rock" });
    await ask(served, "POST", "/role/black/forfeit", {});
    expect((await waitOf(at(served, "white"), 60)).structuredContent).toEqual({
      your_turn: true,
      over: false,
      observation: [{ white: "rock" }],
    });
  });

  it("has taken as long in a fork as in the instance that was forked", async () => {
    const served = await start({ ...counting, roles: { white: { turnTimeoutMs: 100_000 }, black: {} } });
    await waitOf(at(served, "black"), 0);
    const { turns } = (await ask(served, "POST", "/state/snapshot")).data as unknown as { turns: { spent_ms: { white: number } } };
    const { turns: later } = (await ask(served, "POST", "/state/snapshot")).data as unknown as { turns: { spent_ms: { white: number } } };
    expect(later.spent_ms.white).toBeGreaterThan(turns.spent_ms.white);
    await served.host.fork("default", ["copy"]);
    const copy = (await ask(served, "POST", "/state/snapshot", undefined, "copy")).data as unknown as {
      turns: { spent_ms: { white: number } };
    };
    expect(copy.turns.spent_ms.white).toBeGreaterThan(later.spent_ms.white);
  });
});

describe("rewards of roles", () => {
  it("are the environment's reward without a role, where there is one, and each role's own", async () => {
    const served = await start({
      ...counting,
      rewards: [
        { name: "team", role: null, weight: 2, score: () => 0.5 },
        { name: "speed", role: "white", score: () => 3 },
      ],
    });
    expect((await ask(served, "POST", "/task/reward", {})).data).toEqual({
      reward: 1,
      components: { team: 0.5 },
      weights: { team: 2 },
      roles: {
        white: { outcome: { kind: "scored", reward: 3, components: { speed: 3 }, weights: { speed: 1 } } },
        black: { outcome: { kind: "scored", reward: 1, components: { team: 0.5 }, weights: { team: 2 } } },
      },
    });
  });

  it("leave a role unscored whose reward fails, and the others scored", async () => {
    const score = ({ role }: { role: string }) => {
      if (role === "white") throw new Error("no board");
      return 1;
    };
    const served = await start({ ...counting, rewards: [{ name: "won", score }] });
    expect((await ask(served, "POST", "/task/reward", {})).data).toMatchObject({
      reward: null,
      roles: { white: { outcome: { kind: "unscored", cause: "environment", message: "no board" } }, black: { outcome: { reward: 1 } } },
    });
  });

  it("can be asked for after each step, by role", async () => {
    const served = await start({ ...counting, stepReward: ({ role }: { role: string }) => (role === "white" ? 1 : 2) });
    expect((await ask(served, "POST", "/episode/reward", { role: "black" })).data).toMatchObject({ reward: 2 });
    expect((await ask(served, "POST", "/episode/reward", {})).status).toBe(400);
  });
});

describe("a definition with roles", () => {
  const refusals: readonly [string, object, RegExp][] = [
    ["a name that cannot be part of a link", { roles: { "White.1": {} } }, /must be 1 to 32 lower-case letters/],
    ["no role", { roles: {} }, /there are 0 roles/],
    ["an unknown option", { roles: { white: { turnTimeout: 3 } } }, /did you mean 'turnTimeoutMs'/],
    ["a limit that is no time", { roles: { white: { turnTimeoutMs: -1 } } }, /turnTimeoutMs must be/],
    ["turns without roles", { roles: undefined }, /turnOf needs roles/],
    ["a reward for an unknown role", { rewards: [{ name: "won", role: "red", score: () => 1 }] }, /there is no role 'red'/],
    ["the platform's tool", { tools: [{ name: "wait_for_turn", run: () => 1 }] }, /every role has a tool of this name/],
    ["an action with an output", { resolve: () => {}, tools: [{ name: "go", output: z.string(), run: () => "" }] }, /remove its output/],
    ["resources for everybody", { mcp: () => ({ capabilities: {}, request: () => ({}) }) }, /roles have tools only/],
  ];
  it.each(refusals)("is refused with %s", async (_, change, message) => {
    await expect(start({ ...counting, ...change })).rejects.toThrow(message);
  });

  it("needs its turnOf to return known roles", async () => {
    const served = await start({ ...counting, turnOf: () => ["red"] });
    expect((await ask(served, "GET", "/episode/status")).status).toBe(500);
  });

  it("leaves an environment without roles as it was", async () => {
    const served = await start({
      tools: [{ name: "look", run: (_: unknown, { role }: { role: null }) => String(role) }],
      status: () => true,
    });
    const result = await callTool(`${served.url}/mcp`, "look");
    expect(result).toEqual({ content: [{ type: "text", text: "null" }], _meta: { [STATUS_META]: { done: true, reason: null } } });
    expect(Object.keys((await ask(served, "GET", "/episode")).data)).not.toContain("roles");
    expect((await ask(served, "GET", "/episode/prompt?role=white")).status).toBe(404);
    expect((await exchange(at(served, "white"), toolCall("look"))).status).toBe(404);
    expect((await ask(served, "POST", "/state/snapshot")).data).not.toHaveProperty("turns");
  });
});
