import { defineEnvironment, type EnvironmentDefinition } from "@aenv/kit";
import { expect, it } from "vitest";
import { ada, openTestServer, openWorld, type TestServerOptions } from "../instances/fixtures/test-server.ts";
import { childHandlers } from "./requests.ts";

/** One definition for all environments of these tests. What they use is in their configs. */
const node = defineEnvironment({
  setup: async ({ variables, seed, task, children }) => {
    if (variables.FAIL !== undefined) throw new Error(variables.FAIL);
    return { count: 0, seed, task: task?.id ?? null, seen: children.list().map(({ name }) => name) };
  },
  functions: [
    { name: "count", run: (_, { state }) => ++state.count },
    { name: "read", run: (_, { state }) => state },
    {
      // Calls a function of the child at the end of the path.
      name: "down",
      run: async (input, { children }) => {
        const [first = "", ...rest] = String(input.path).split("/");
        const child = children.get(first);
        if (rest.length === 0) return child.callFunction(String(input.name), {});
        return child.callFunction("down", { path: rest.join("/"), name: input.name });
      },
    },
  ],
});

async function open(options: TestServerOptions = {}, deploy: object = {}) {
  const world = openWorld({}, node as EnvironmentDefinition);
  const leaf = await world.publish(ada, "leaf", deploy);
  const mid = await world.publish(ada, "mid", {
    ...deploy,
    uses: [
      { name: "left", env: "leaf@^1" },
      { name: "late", env: "leaf", when: "demand" },
    ],
  });
  const top = await world.publish(ada, "top", {
    ...deploy,
    uses: [
      { name: "mid", env: mid },
      { name: "leaf", env: leaf, task: "none" },
    ],
  });
  const server = openTestServer(world, options);
  const live = async () => {
    const rows = [];
    for await (const { value } of server.rows.each({ index: "live", value: "yes" })) rows.push(value);
    return rows;
  };
  const paths = async () => (await live()).map(({ path = "" }) => path).sort();
  const down = (row: Parameters<typeof server.call>[0], path: string, name: string) => server.call(row, "down", { path, name });
  return { world, server, top, mid, leaf, live, paths, down };
}

function handlersOf({ clients, instances, slots }: ReturnType<typeof openTestServer>) {
  const options = {
    clients,
    instances: {
      find: (id: string) => instances.find(id),
      openChild: (...child: Parameters<typeof instances.openChild>) => instances.openChild(...child),
      end: (...end: Parameters<typeof instances.end>) => instances.end(...end),
    },
    isOccupant: (sandboxId: string, id: string) => slots.isOccupant(sandboxId, id),
  };
  const tools = { idleMs: 1_000, holdAnswer: () => () => {}, failureOf: () => ({ code: "internal", message: "", retryable: false }) };
  return { handlers: childHandlers(options, tools) };
}

it("an instance begins with all instances of its tree, which end with it", async () => {
  const { server, top, paths, down } = await open();
  const root = await server.create(top, { seed: 7 });
  expect(await paths()).toEqual(["", "leaf", "mid", "mid/left"]);
  expect(await down(root, "mid/left", "count")).toBe(1);
  expect(await down(root, "mid/left", "count")).toBe(2);
  expect(await down(root, "leaf", "count")).toBe(1);
  await server.instances.destroy(root.id, ada);
  expect(await paths()).toEqual([]);
  expect(server.failures).toEqual([]);
});

it("children have seeds of their own, which follow from the seed of the root", async () => {
  const { server, top, down } = await open();
  const seeds = async () => {
    const root = await server.create(top, { seed: 7 });
    return Promise.all(["mid", "mid/left", "leaf"].map(async (path) => ((await down(root, path, "read")) as { seed: number }).seed));
  };
  const first = await seeds();
  expect(new Set(first).size).toBe(3);
  expect(await seeds()).toEqual(first);
});

it("a child that is used on demand is started by its first call, once", async () => {
  const { server, top, paths, down } = await open();
  const root = await server.create(top);
  expect(await Promise.all([1, 2, 3].map(() => down(root, "mid/late", "count")))).toEqual(expect.arrayContaining([1, 2, 3]));
  expect(await paths()).toEqual(["", "leaf", "mid", "mid/late", "mid/left"]);
});

it("a reset begins with new children, and ends the old ones", async () => {
  const { server, top, live, paths, down } = await open();
  const root = await server.create(top, { seed: 1 });
  await down(root, "mid/left", "count");
  const before = (await live()).map(({ id }) => id);
  await server.instances.reset(root.id, { seed: 2 }, { caller: ada, signal: server.signal });
  await expect.poll(paths).toEqual(["", "leaf", "mid", "mid/left"]);
  const after = (await live()).map(({ id }) => id);
  expect(after.filter((id) => before.includes(id))).toEqual([root.id]);
  expect(await down(root, "mid/left", "read")).toMatchObject({ count: 0 });
});

it("when a child does not start, the reset fails and the old episode goes on with its children", async () => {
  const { world, server, top, paths, down } = await open();
  const root = await server.create(top);
  await down(root, "leaf", "count");
  const held = world.hold("/env-instance");
  const reset = server.instances.reset(root.id, {}, { caller: ada, signal: server.signal });
  const response = await held;
  response.statusCode = 500;
  response.end(JSON.stringify({ success: false, message: "no", error: { code: "instance.setup_failed" } }));
  await expect(reset).rejects.toMatchObject({ message: expect.stringContaining("child '") });
  await expect.poll(paths).toEqual(["", "leaf", "mid", "mid/left"]);
  expect(await down(root, "leaf", "count")).toBe(2);
});

it("when a child does not start, nothing of the tree is left", async () => {
  const { world, server, paths } = await open();
  const bad = await world.publish(ada, "bad", {
    uses: [
      { name: "fine", env: "leaf" },
      { name: "broken", env: "leaf", variables: { FAIL: "no luck" } },
    ],
  });
  await expect(server.create(bad)).rejects.toMatchObject({ message: expect.stringContaining("child 'broken'") });
  await expect.poll(paths).toEqual([]);
});

it("a tree is admitted as a whole: one instance too many, and there is none", async () => {
  const { server, top, live, paths } = await open({ maxInstances: 7 });
  await server.create(top);
  await expect(server.create(top)).rejects.toMatchObject({ code: "quota.exceeded" });
  expect(await paths()).toEqual(["", "leaf", "mid", "mid/left"]);
  expect(await live()).toHaveLength(4);
});

// Before: of 300 parents at once, 64 held all places of `creations` and waited for children that waited for a place.
it("300 trees that are created at once all run: children wait for no place that a parent holds", { timeout: 120_000 }, async () => {
  const { server, mid, live } = await open({ startTimeoutMs: 60_000, maxHosts: 2 });
  const created = await Promise.allSettled(
    Array.from({ length: 300 }, async () => {
      const row = await server.instances.create({ envName: mid }, { caller: ada, signal: server.signal });
      return server.instances.started(row.id, 100_000, ada);
    }),
  );
  expect(created.filter(({ status }) => status === "rejected")).toEqual([]);
  expect(await live()).toHaveLength(600);
});

it("forks of a tree have children of their own with the same states", async () => {
  const { server, top, paths, down } = await open();
  const root = await server.create(top, { seed: 3 });
  await down(root, "mid/left", "count");
  await down(root, "leaf", "count");
  await down(root, "mid/late", "count");
  const forks = await server.instances.fork(root.id, 8, { caller: ada, signal: server.signal });
  expect(forks).toHaveLength(8);
  expect(await paths()).toHaveLength(9 * 5);
  for (const [at, fork] of forks.entries()) for (let more = 0; more < at; more++) await down(fork, "mid/left", "count");
  for (const [at, fork] of forks.entries()) {
    expect(await down(fork, "mid/left", "read")).toMatchObject({ count: 1 + at });
    expect(await down(fork, "leaf", "read")).toMatchObject({ count: 1 });
    expect(await down(fork, "mid/late", "read")).toMatchObject({ count: 1 });
  }
  expect(await down(root, "mid/left", "read")).toMatchObject({ count: 1 });
});

it("forks in processes of their own have children too", { timeout: 30_000 }, async () => {
  const { server, top, paths, down } = await open({}, { isolation: "instance" });
  const root = await server.create(top);
  await down(root, "mid/left", "count");
  const forks = await server.instances.fork(root.id, 2, { caller: ada, signal: server.signal });
  for (const fork of forks) expect(await down(fork, "mid/left", "count")).toBe(2);
  for (const { id } of [root, ...forks]) await server.instances.destroy(id, ada);
  expect(await paths()).toEqual([]);
});

it("a snapshot has the states of the children, and an instance that starts from it continues with them", async () => {
  const { server, top, down } = await open();
  const root = await server.create(top, { seed: 5 });
  await down(root, "mid/left", "count");
  const snapshot = await server.instances.snapshot(root.id, { caller: ada, signal: server.signal });
  expect(snapshot).toMatchObject({ children: { mid: { snapshot: { children: { left: { snapshot: {} } } } }, leaf: {} } });
  await down(root, "mid/left", "count");
  const copy = await server.create(top, { seed: 5, snapshot });
  expect(await down(copy, "mid/left", "count")).toBe(2);
});

it("a child cannot be renewed, reset, forked or deleted alone", async () => {
  const { server, top, live } = await open();
  await server.create(top);
  const { id = "" } = (await live()).find(({ path }) => path === "mid") ?? {};
  const context = { caller: ada, signal: server.signal };
  const refused = { code: "instance.unsupported", message: expect.stringContaining("'mid' of another instance") };
  await expect(server.instances.renew(id, "1h", ada)).rejects.toMatchObject(refused);
  await expect(server.instances.reset(id, {}, context)).rejects.toMatchObject(refused);
  await expect(server.instances.fork(id, 1, context)).rejects.toMatchObject(refused);
  await expect(server.instances.destroy(id, ada)).rejects.toMatchObject(refused);
});

it("a child that is lost is an error with its name, and its parent goes on", async () => {
  const { server, top, live, down } = await open();
  const root = await server.create(top);
  const { id = "" } = (await live()).find(({ path }) => path === "leaf") ?? {};
  await server.instances.end(id, "its process was killed", "Failed");
  await expect(down(root, "leaf", "count")).rejects.toMatchObject({ message: expect.stringContaining("child 'leaf'") });
  expect(await down(root, "mid/left", "count")).toBe(1);
});

it("maintenance ends children whose parent has ended without them", async () => {
  const { server, top, live, paths } = await open();
  const root = await server.create(top);
  await server.rows.update(root.id, (row) => ({ ...row, status: "Terminated", slot: null }));
  expect(await live()).toHaveLength(3);
  await server.instances.collectChildren();
  expect(await paths()).toEqual([]);
});

it("an instance has at most two children of one name, however many its code asks for", async () => {
  const { server, mid, paths } = await open({}, { isolation: "instance" });
  const root = await server.create(mid);
  const { handlers } = handlersOf(server);
  const ask = (episode: string) =>
    handlers["/child/open"]({
      hostId: root.slot?.sandboxId ?? "",
      instanceId: root.id,
      given: { name: "left", episode, seed: 1, has_snapshot: false },
      signal: server.signal,
    } as never);
  const asked = await Promise.allSettled(["a", "b", "c", "d", "e"].map(ask));
  expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(await paths()).toEqual(["", "left", "left"]);
});

it("a child reaches neither its parent nor a sibling, and a parent no instance that is not its child", async () => {
  const { server, top, live, leaf } = await open({}, { isolation: "instance" });
  await server.create(top);
  const stranger = await server.create(leaf);
  const rows = await live();
  const at = (path: string) => rows.find((row) => (row.path ?? "") === path && row.id !== stranger.id);
  const [root, mid, left, sibling] = [at(""), at("mid"), at("mid/left"), at("leaf")];
  const { handlers } = handlersOf(server);
  /** What the code of an environment can send over the connection of its process. */
  const ask = (from: typeof root, instanceId: string | undefined, child = "", path = "/task/reset") =>
    handlers["/child/request"]({
      hostId: from?.slot?.sandboxId ?? "",
      instanceId: instanceId ?? "",
      given: { child, method: "POST", path },
      signal: server.signal,
    } as never).catch((error: unknown) => error);
  const refused = { code: "instance.not_found" };
  expect(await ask(left, left?.id, mid?.id)).toMatchObject(refused);
  expect(await ask(left, left?.id, sibling?.id)).toMatchObject(refused);
  expect(await ask(left, root?.id, mid?.id)).toMatchObject(refused);
  expect(await ask(root, root?.id, stranger.id)).toMatchObject(refused);
  expect(await ask(root, root?.id, left?.id)).toMatchObject(refused);
  expect(await ask(root, root?.id, "nothing")).toMatchObject(refused);
  // The routes by which the platform manages the instances of a process are not those of a child.
  for (const path of ["/fork", "/rename", "/fork-spec", "/../x/mcp", "/%2e%2e/x", "mcp"])
    expect(await ask(root, root?.id, mid?.id, path)).toMatchObject({ code: "route.not_found" });
  const close = (from: typeof root, child = "") =>
    handlers["/child/close"]({ hostId: from?.slot?.sandboxId ?? "", instanceId: from?.id ?? "", given: { child } } as never).catch(
      (error: unknown) => error,
    );
  expect(await close(left, root?.id)).toMatchObject(refused);
  expect(await close(left, sibling?.id)).toMatchObject(refused);
  expect(await close(root, stranger.id)).toMatchObject(refused);
  expect(await live()).toHaveLength(5);
});
