import { networkInterfaces } from "node:os";
import { Environment } from "@aenv/sdk";
import { describeNeeding, type Tree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { episodeProgram } from "./fixtures/episode-program.ts";
import { type Platform, publish, startPlatform } from "./platform.ts";

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

interface Health {
  readonly data: { readonly greeting: string | null; readonly pid: number };
}

function describeEpisodes(flags: () => Readonly<Record<string, unknown>>): void {
  let platform: Platform;
  const projects: Tree[] = [];
  const publishProgram = async (version: string, variables?: Readonly<Record<string, string>>, options: object = {}) => {
    const project = episodeProgram(variables);
    projects.push(project);
    return publish(platform, project.path, { version, ...options });
  };
  let ref: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: flags() });
    ref = await publishProgram("1.0.0");
  }, 120_000);
  afterAll(async () => {
    for (const project of projects) project[Symbol.dispose]();
    await platform?.close();
  }, 60_000);

  const ask = async (id: string, method: string, path: string, body?: unknown) => {
    const response = await fetch(`${platform.dataUrl}/env-instance/${id}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return ((await response.json()) as { data: never }).data as Record<string, unknown>;
  };
  const healthOf = async (id: string) => ((await (await fetch(`${platform.dataUrl}/env-instance/${id}/health`)).json()) as Health).data;
  const add = (id: string, by: number) =>
    ask(id, "POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "add", arguments: { by } } });
  const stateOf = (id: string) => ask(id, "POST", "/state/snapshot", {});
  const digestOf = async (id: string) => (await ask(id, "GET", "/state/digest")).digest;
  const create = (request: object = {}) => platform.create(ref, { ...request });
  const fork = async (id: string, request: object = { count: 1 }) =>
    (await platform.demand("POST", `/env-instance/${id}/fork`, request)) as { id: string }[];

  it("begins the task and the seed that a creation names", { timeout: 120_000 }, async () => {
    const { id } = await create({ task: "five", seed: 7 });
    expect(await stateOf(id)).toMatchObject({ task: "five", seed: 7, goal: 5 });
    const { id: other } = await create({ seed: 8 });
    expect(await stateOf(other)).toMatchObject({ task: "three", seed: 8 });
  });

  // Before: 200, Running, task "nope".
  it("refuses a creation that names a task which the program does not have", async () => {
    expect(await platform.ask("POST", "/env-instance", { envName: ref, task: "nope" })).toMatchObject({
      status: 404,
      error: { code: "task.not_found" },
      message: expect.stringContaining("no task 'nope'"),
    });
  });

  it("says in the published metadata how many tasks a program has", async () => {
    const { metadata } = (await platform.demand("GET", `/env/adder/1.0.0`)) as { metadata: Record<string, unknown> };
    expect(metadata).toMatchObject({
      taskCount: 2,
      tasksProblem: null,
      abilities: { oracle: true, snapshot: true },
      keepsStateInModules: true,
    });
  });

  it("forks the state of a program, which continues on its own and keeps its variables", { timeout: 120_000 }, async () => {
    const { id } = await create({ task: "five", environment_variables: { GREETING: "hello" } });
    await add(id, 2);
    const copies = await fork(id, { count: 2 });
    for (const copy of copies) expect(await digestOf(copy.id)).toBe(await digestOf(id));
    const [first = { id: "" }, second = { id: "" }] = copies;
    await add(first.id, 3);
    expect([await stateOf(id), await stateOf(first.id), await stateOf(second.id)]).toMatchObject([
      { n: 2 },
      { n: 5, reached: true },
      { n: 2 },
    ]);
    expect((await healthOf(first.id)).greeting).toBe("hello");
  });

  it("starts instances from a stored snapshot of the state of a program", { timeout: 120_000 }, async () => {
    const { id } = await create({ task: "five", seed: 3 });
    await add(id, 4);
    const stored = (await platform.demand("POST", `/env-instance/${id}/snapshot`, { name: "four", fidelity: "state" })) as { id: string };
    await platform.demand("DELETE", `/env-instance/${id}`);
    const { id: next } = await platform.create(ref, { snapshot: { id: stored.id } });
    expect(await stateOf(next)).toMatchObject({ task: "five", seed: 3, n: 4 });
    const value = await stateOf(next);
    const { id: third } = await platform.create(ref, { snapshot: value });
    expect(await stateOf(third)).toEqual(value);
  });

  it("refuses a fork whose program restores another state than the one that was stored", { timeout: 120_000 }, async () => {
    const lying = await publishProgram("2.0.0", { HOSTS: "no", LIES: "yes" });
    const { id } = await platform.create(lying);
    const refused = await platform.ask("POST", `/env-instance/${id}/fork`, { count: 1, fidelity: "state" });
    expect(refused).toMatchObject({ error: { code: "snapshot.invalid" }, message: expect.stringContaining("restored another state") });
  });

  it("refuses tasks and snapshots for a program without episodes, and starts it with a seed", { timeout: 120_000 }, async () => {
    const plain = await publishProgram("3.0.0", { HOSTS: "no", PLAIN: "yes" });
    const { metadata } = (await platform.demand("GET", `/env/adder/3.0.0`)) as { metadata: Record<string, unknown> };
    expect(metadata).toMatchObject({ taskCount: null });
    for (const request of [{ task: "three" }, { snapshot: { n: 1 } }])
      expect(await platform.ask("POST", "/env-instance", { envName: plain, ...request })).toMatchObject({
        status: 501,
        error: { code: "instance.unsupported" },
      });
    const { id, status } = await platform.create(plain, { seed: 4 });
    expect(status).toBe("Running");
    // It answers with JSON that is no error of ours, as web frameworks do. Before: "sandbox.lost".
    expect(await platform.ask("POST", `/env-instance/${id}/reset`, {})).toMatchObject({ error: { code: "instance.unsupported" } });
  });

  it("runs many instances in one process of a program that has the routes of a host", { timeout: 120_000 }, async () => {
    const shared = await publishProgram("1.0.0", {}, { isolation: "shared" });
    const instances = await Promise.all([
      platform.create(shared, { task: "five", seed: 1, environment_variables: { GREETING: "hello" }, arguments: ["--fast"] }),
      platform.create(shared, { task: "three", seed: 2 }),
    ]);
    const [one = { id: "" }, two = { id: "" }] = instances;
    expect((await healthOf(one.id)).pid).toBe((await healthOf(two.id)).pid);
    await add(one.id, 5);
    expect([await stateOf(one.id), await stateOf(two.id)]).toMatchObject([
      { n: 5, reached: true, variables: { GREETING: "hello" }, args: ["--fast"] },
      { n: 0, goal: 3 },
    ]);
    const [copy = { id: "" }] = await fork(one.id);
    expect(await stateOf(copy.id)).toMatchObject({ n: 5, seed: 1 });
    expect(await platform.ask("POST", "/env-instance", { envName: shared, task: "nope" })).toMatchObject({
      error: { code: "task.not_found" },
    });
    const stored = (await platform.demand("POST", `/env-instance/${copy.id}/snapshot`, { name: "shared-five" })) as { id: string };
    await platform.demand("DELETE", `/env-instance/${copy.id}`);
    const { id: next } = await platform.create(shared, { snapshot: { id: stored.id } });
    expect(await stateOf(next)).toMatchObject({ n: 5 });
    expect((await platform.ask("GET", `/env-instance/${copy.id}`)).data.status).toBe("Terminated");
  });

  it("refuses to share the process of a program that has no routes of a host", { timeout: 120_000 }, async () => {
    const alone = await publishProgram("5.0.0", { HOSTS: "no" }, { isolation: "shared" });
    expect(await platform.ask("POST", "/env-instance", { envName: alone })).toMatchObject({
      error: { code: "instance.unsupported" },
      message: expect.stringContaining("keepsStateInModules"),
    });
  });

  it("is what the SDK plays: tasks by split, reset, prompt, status, oracle, digest and reward", { timeout: 120_000 }, async () => {
    const { controlUrl, dataUrl } = platform;
    await using env = await Environment.create(ref, { controlUrl, dataUrl, task: "five", seed: 2 });
    expect((await env.tasks({ split: "test" })).map((task) => task.id)).toEqual(["five"]);
    expect((await env.episode.prompt()).messages).toEqual([{ role: "user", content: "Reach 5" }]);
    const before = await env.episode.digest();
    for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
    expect(await env.episode.status()).toEqual({ done: true, reason: "reached" });
    expect(await env.score()).toMatchObject({ reward: 1, components: { reached: 1 } });
    await env.reset({ task: "five", seed: 2 });
    expect(await env.episode.digest()).toBe(before);
  });
}

describe("the episodes of a program, as a process", () => {
  describeEpisodes(() => ({}));

  // Before: the server called `http://::1:PORT`, which is no URL, and could publish no such program.
  it.skipIf(!hasIpv6)("are reached where the program listens on an address of IPv6", { timeout: 60_000 }, async () => {
    await using platform = await startPlatform();
    for (const [at, LISTEN] of ["::", "::1"].entries()) {
      using project = episodeProgram({ HOSTS: "no", LISTEN });
      const ref = await publish(platform, project.path, { version: `${at + 1}.0.0` });
      const { id } = await platform.create(ref, { task: "five" });
      const response = await fetch(`${platform.dataUrl}/env-instance/${id}/episode/prompt`);
      expect(await response.json()).toMatchObject({ data: { messages: [{ content: "Reach 5" }] } });
    }
  });
});

describeNeeding("runc", "the episodes of a program, with the engine oci", () => {
  describeEpisodes(() => ({ engine: "oci" }));
});
