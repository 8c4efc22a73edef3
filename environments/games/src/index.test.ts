import { callToolResult, type RoleRewards } from "@aenv/contract";
import { type Served, serve } from "@aenv/kit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import games from "./index.ts";

let served: Served;
beforeAll(async () => {
  served = await serve(games, { name: "games", port: 0, writeLog: () => {} });
});
afterAll(() => served.close());

interface Answer {
  readonly status: number;
  readonly data: never;
}

async function ask(method: string, path: string, body?: object): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${served.url}${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body), headers }) });
  const { data } = (await response.json()) as { readonly data: never };
  return { status: response.status, data };
}

/** Calls a tool as the agent of a role does. */
async function call(role: string, name: string, args: object = {}) {
  const response = await fetch(`${served.url}/role/${role}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const text = await response.text();
  const { result } = JSON.parse(text.startsWith("{") ? text : text.slice(text.lastIndexOf("data: ") + 6)) as { readonly result: unknown };
  const { content, isError = false, structuredContent } = callToolResult.parse(result);
  return { text: content.map((one) => one.text).join(""), isError, structured: structuredContent as never };
}

const begin = (task: string, seed = 1) => ask("POST", "/task/reset", { task, seed });
const turn = async (): Promise<string[]> => ((await ask("GET", "/episode/status")).data as { turn: string[] }).turn;
const rewards = async () => (await ask("POST", "/task/reward", {})).data as RoleRewards;

/** Plays the oracle of each role whose turn it is, to the end. */
async function playOracles(): Promise<void> {
  for (let due = await turn(); due.length > 0; due = await turn())
    for (const role of due) {
      const { actions } = (await ask("GET", `/episode/oracle?role=${role}`)).data as { actions: { tool: string; arguments: object }[] };
      for (const action of actions) expect(await call(role, action.tool, action.arguments)).toMatchObject({ isError: false });
    }
}

describe("games", () => {
  it("lists a task for each game", async () => {
    const { items } = (await ask("GET", "/task/list")).data as { items: { id: string }[] };
    expect(items.map(({ id }) => id)).toEqual(["kuhn", "connect-four", "rock-paper-scissors"]);
  });

  it.each(["kuhn", "connect-four", "rock-paper-scissors"])("plays %s to the end with its own oracles", async (task) => {
    await begin(task);
    await playOracles();
    const { reward, roles } = await rewards();
    expect([reward, roles.white?.outcome.kind, roles.black?.outcome.kind]).toEqual([0, "scored", "scored"]);
    expect((await ask("GET", "/episode/status")).data).toMatchObject({ done: true, reason: expect.stringMatching(/wins|draw/) });
  });

  it("pays zero in sum over 1,000 hands of Kuhn poker by two scripted players, and not zero to each", { timeout: 120_000 }, async () => {
    const script = { "": "bet", check: "bet", bet: "call", "check bet": "call" } as const;
    const won = { white: 0, black: 0 };
    for (let seed = 0; seed < 1_000; seed++) {
      await begin("kuhn", seed);
      let history = "";
      for (let due = await turn(); due.length > 0; due = await turn()) {
        // White bets every second hand; who faces a bet calls.
        const move = history === "" && seed % 2 === 1 ? "check" : script[history as keyof typeof script];
        expect((await call(due[0] as string, "move", { move })).isError).toBe(false);
        history = `${history} ${move}`.trim();
      }
      const { reward, components } = await rewards();
      expect(reward).toBe(0);
      won.white += components.white ?? 0;
      won.black += components.black ?? 0;
    }
    expect(won.white + won.black).toBe(0);
    expect(won.white).not.toBe(0);
  });

  it("enforces turns, refuses impossible moves, and shows no card of the other", async () => {
    await begin("kuhn");
    expect(await call("black", "move", { move: "check" })).toMatchObject({ isError: true, text: "it is white's turn" });
    expect(await call("white", "move", { move: "call" })).toMatchObject({
      isError: true,
      text: expect.stringContaining("possible: check, bet"),
    });
    const views = await Promise.all(["white", "black"].map(async (role) => (await call(role, "look")).text));
    for (const view of views) expect(view.match(/jack|queen|king/g)?.length).toBe(1);
    expect(views[0]).not.toBe(views[1]);
    expect(((await call("black", "wait_for_turn", { timeout_s: 0 })).structured as { observation: string }).observation).not.toMatch(
      / white /,
    );
  });

  it("keeps a choice of rock-paper-scissors to itself until both have chosen", async () => {
    await begin("rock-paper-scissors");
    expect((await call("white", "move", { move: "rock" })).structured).toEqual({ waiting: ["black"] });
    expect(((await call("black", "look")).structured as { view: string }).view).not.toContain("rock");
    expect((await call("black", "move", { move: "paper" })).text).toContain("white chose rock, black chose paper");
  });

  it("has no score before the end, which is not a zero", async () => {
    await begin("connect-four");
    const { reward, roles } = await rewards();
    expect([reward, roles.white?.outcome.kind]).toEqual([null, "unscored"]);
  });

  it("makes a player lose that hangs or makes four invalid moves", async () => {
    await begin("kuhn");
    await call("white", "move", { move: "bet" });
    await ask("POST", "/role/black/forfeit", { reason: "time" });
    expect((await rewards()).components).toEqual({ white: 1, black: -1 });
    await begin("connect-four");
    for (let move = 0; move < 4; move++) await call("white", "move", { move: "8" });
    expect((await rewards()).components).toEqual({ white: -1, black: 1 });
  });

  it("goes on from a snapshot with a choice that waits", async () => {
    await begin("rock-paper-scissors");
    await call("white", "move", { move: "rock" });
    const { data: snapshot } = await ask("POST", "/state/snapshot", {});
    await call("black", "move", { move: "rock" });
    await ask("POST", "/state/restore", { snapshot });
    expect(await turn()).toEqual(["black"]);
    expect((await call("black", "move", { move: "scissors" })).text).toContain("white chose rock, black chose scissors");
  });
});
