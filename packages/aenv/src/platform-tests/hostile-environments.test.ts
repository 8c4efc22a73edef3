import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RolloutResult, rolloutResult } from "@aenv/contract";
import { type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type ChildPlatform, startChild } from "./child.ts";
import { SOLVES } from "./fixtures/rollouts.ts";
import { projects, publish } from "./platform.ts";

vi.setConfig({ testTimeout: 120_000 });

/** What the environment of `fixtures/hostile` answers. */
const attacks = [
  "endless-body",
  "endless-error",
  "endless-event",
  "endless-events",
  "deep",
  "deep-error",
  "many-values",
  "bad-values",
  "headers",
] as const;
/** A request of each kind; the others are read by the same code. */
const fewAttacks: readonly (typeof attacks)[number][] = ["endless-body", "endless-error", "deep", "bad-values", "headers"];
const attacksOn = (route: string) => (route === "/mcp" ? attacks : fewAttacks);

/** Codes that say that the environment, or the sandbox that it runs in, did not answer as it has to. */
const BLAMES_ENVIRONMENT = /^(?:environment|sandbox|instance|episode|tool|task|reward|function|snapshot)\./;

/** Before: +730 MB for one answer of 250 MB, and +212 MiB for nine attacks on a rollout's tools within the limits of other clients. */
const MAX_GROWTH_MB = 150;

let folder: string;
let server: ChildPlatform;
let environment: string;
let model: ScriptedOpenAi;
let played = 0;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "aenv-hostile-"));
  attack("", "");
  server = await startChild({ logLevel: "silent" });
  const deployConfig = { environmentVariables: { ATTACK_FILE: join(folder, "attack") } };
  environment = await publish(server, projects.hostile, { deployConfig });
  model = await scriptedOpenAi([{ toolCalls: [{ name: "say", arguments: { text: "hello" } }] }, "I said hello."]);
  // What the server loads at its first requests does not count.
  expect(await play()).toMatchObject({ kind: "scored", reward: 1 });
});
afterEach(() => attack("", ""));
afterAll(async () => {
  await model?.[Symbol.asyncDispose]();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

function attack(route: string, name: string): void {
  writeFileSync(join(folder, "attack"), `${route} ${name}`);
}

async function send(base: string, method: string, path: string, body?: object) {
  const response = await fetch(base + path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text };
}

/** A rollout on an instance of its own. */
async function play(limits: object = {}, { baseUrl } = model): Promise<RolloutResult["outcome"]> {
  const one = {
    id: `r${played}`,
    environment,
    task: { id: "greet" },
    model: { base_url: baseUrl, api_key: "secret", name: "m" },
    variables: { ROLLOUT: String(played++) },
    limits,
    retries: 0,
  };
  const { text } = await send(server.controlUrl, "POST", "/rollouts", { stream: true, rollouts: [one] });
  return rolloutResult.parse(JSON.parse(text.trim().split("\n").at(-1) ?? "")).outcome;
}

/** Requests of an owner, and the route of the environment that the server reads for them. */
const requests: Readonly<Record<string, readonly [route: string, ask: (begin: () => void) => Promise<{ status: number; text: string }>]>> =
  {
    "the start of an instance": ["/env-instance", (begin) => control(begin, "POST", "/env-instance", { envName: environment })],
    "a reset": ["/task/reset", (begin) => onInstance(begin, "POST", "/reset")],
    "a snapshot": ["/state/snapshot", (begin) => onInstance(begin, "POST", "/snapshot")],
    "a session's abilities": ["/episode", (begin) => control(begin, "POST", "/sessions", { environment })],
    "a session's first observation": ["/task/reset", (begin) => control(begin, "POST", "/sessions", { environment })],
    "a session's prompt": ["/episode/prompt", (begin) => control(begin, "POST", "/sessions", { environment })],
    "a session's step": ["/mcp", (begin) => onSession(begin, "/step", { tool: { name: "say", arguments: { text: "hello" } } })],
    "a session's score": ["/task/reward", (begin) => onSession(begin, "/score", {})],
    "a list of tasks": ["/task/list", (begin) => control(begin, "GET", `/environments/${environment}/tasks`)],
    "an episode of OpenEnv": ["/episode", (begin) => openEnv(begin, "reset", {})],
    "a reset of OpenEnv": ["/task/reset", (begin) => openEnv(begin, "reset", {})],
    "a step of OpenEnv": ["/mcp", (begin) => openEnv(begin, "step", { action: { tool_name: "say", arguments: { text: "hello" } } })],
  };

function control(begin: () => void, method: string, path: string, body?: object) {
  begin();
  return send(server.controlUrl, method, path, body);
}

function openEnv(begin: () => void, path: string, body: object) {
  begin();
  return send(server.dataUrl, "POST", `/openenv/${environment}/${path}`, body);
}

async function onInstance(begin: () => void, method: string, path: string) {
  const { id } = await server.create(environment);
  begin();
  const answer = await send(server.controlUrl, method, `/env-instance/${id}${path}`, {});
  attack("", "");
  await server.demand("DELETE", `/env-instance/${id}`);
  return answer;
}

async function onSession(begin: () => void, path: string, body: object) {
  const { text } = await send(server.controlUrl, "POST", "/sessions", { environment });
  const { session } = JSON.parse(text);
  begin();
  const answer = await send(server.controlUrl, "POST", `/sessions/${session}${path}`, body);
  attack("", "");
  await send(server.controlUrl, "DELETE", `/sessions/${session}`);
  return answer;
}

/** How much the server's memory grew at its peak, in MiB; 0 where the system does not tell. */
async function growth(work: () => Promise<void>): Promise<number> {
  if (server.peakMb() === null) {
    await work();
    return 0;
  }
  // The peak begins anew.
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
  const before = server.peakMb() ?? 0;
  await work();
  return (server.peakMb() ?? 0) - before;
}

describe("a hostile environment", () => {
  it.each(Object.entries(requests))(
    "ends only %s that it was asked for, with a code that blames it, and takes little memory",
    async (_, [route, ask]) => {
      const grown = await growth(async () => {
        for (const name of attacksOn(route)) {
          const { status, text } = await ask(() => attack(route, name));
          attack("", "");
          // A value that is only large is passed on to who has asked for it.
          if (status === 200 && name === "bad-values") continue;
          expect([name, status, text]).toEqual([name, expect.toSatisfy((code: number) => code >= 500), expect.any(String)]);
          expect([name, JSON.parse(text).error.code]).toEqual([name, expect.stringMatching(BLAMES_ENVIRONMENT)]);
          expect(text.length).toBeLessThan(10_000);
        }
      });
      expect(grown).toBeLessThan(MAX_GROWTH_MB);
    },
  );

  it.each(["/episode", "/task/reset", "/episode/prompt", "/mcp", "/task/reward"])(
    "leaves a rollout unscored that reads %s, with a short message, and takes little memory",
    async (route) => {
      const grown = await growth(async () => {
        for (const name of attacksOn(route)) {
          attack(route, name);
          const outcome = await play();
          expect([name, outcome]).toEqual([
            name,
            expect.objectContaining({ kind: "unscored", cause: expect.stringMatching(/^(?:environment|sandbox)$/) }),
          ]);
          expect(JSON.stringify(outcome).length).toBeLessThan(5_000);
        }
      });
      expect(grown).toBeLessThan(MAX_GROWTH_MB);
    },
  );

  it("cannot hold a rollout beyond the agent's time limit by a tool that answers one byte after the other", async () => {
    await using late = await scriptedOpenAi(async () => {
      attack("/mcp", "drip");
      return { toolCalls: [{ name: "say", arguments: { text: "hello" } }] };
    });
    expect(await play({ seconds: 1 }, late)).toMatchObject({ kind: "scored", reward: 0 });
  });

  it("does not keep a rollout whose tasks never end", async () => {
    attack("/task/list", "endless-pages");
    expect(await play()).toMatchObject({ kind: "scored", reward: 1 });
  });

  it("does not disturb the rollouts of others", async () => {
    const other = await publish(server, projects.echo);
    await using friendly = await scriptedOpenAi(SOLVES);
    attack("/mcp", "endless-body");
    const attacked = Array.from({ length: 4 }, () => play());
    const one = { id: "other", environment: other, task: { id: "greet" }, model: { base_url: friendly.baseUrl, api_key: "k", name: "m" } };
    const { text } = await send(server.controlUrl, "POST", "/rollouts", { stream: true, rollouts: [one] });
    expect(rolloutResult.parse(JSON.parse(text.trim().split("\n").at(-1) ?? "")).outcome).toMatchObject({ kind: "scored", reward: 1 });
    expect((await Promise.all(attacked)).map(({ kind }) => kind)).toEqual(Array(4).fill("unscored"));
  });

  it("fills no memory with what it prints", async () => {
    const grown = await growth(async () => {
      const { id } = await server.create(environment, { environment_variables: { PRINTS: "200" } });
      const logs = await send(server.controlUrl, "GET", `/env-instance/${id}/logs?tail=1000`);
      expect(logs.text.length).toBeLessThan(32 * 2 ** 20);
      expect((await server.ask("GET", `/env-instance/${id}/events`)).success).toBe(true);
      await server.demand("DELETE", `/env-instance/${id}`);
    });
    expect(grown).toBeLessThan(MAX_GROWTH_MB);
  });
});
