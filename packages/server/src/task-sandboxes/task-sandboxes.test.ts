import { defineEnvironment, type EnvironmentDefinition, type TaskSandbox } from "@aenv/kit";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { ada, bob, openTestServer, openWorld } from "../instances/fixtures/test-server.ts";
import { MemoryGate } from "../slots/memory-gate.ts";

const environment = defineEnvironment({
  setup: async ({ variables, sandboxes }) => {
    if (variables.IMAGE !== undefined) await sandboxes.open({ image: variables.IMAGE });
    if (variables.FAIL !== undefined) throw new Error(variables.FAIL);
    return {};
  },
  functions: [
    {
      name: "open",
      input: z.object({
        name: z.string().optional(),
        image: z.string().optional(),
        capabilities: z.enum(["minimal", "docker"]).optional(),
      }),
      run: async ({ name, image, capabilities }, { sandboxes }) => {
        const opened = await sandboxes.open({ ...(name && { name }), ...(image && { image }), ...(capabilities && { capabilities }) });
        return { name: opened.name, image: opened.image };
      },
    },
    {
      name: "service",
      input: z.object({ name: z.string() }),
      run: async ({ name }, { sandboxes }) => {
        const program = { command: ["serve"], user: "app" };
        await sandboxes.open({
          name,
          networks: [{ name: "task", aliases: [name] }],
          volumes: [{ name: "data", path: "/data" }],
          program,
          env: { A: "1" },
        });
      },
    },
    { name: "close", input: z.object({ name: z.string() }), run: ({ name }, { sandboxes }) => sandboxes.get(name).close() },
    { name: "names", run: (_, { sandboxes }) => sandboxes.list().map(({ name }: TaskSandbox) => name) },
    { name: "exec", run: (_, { sandbox }) => sandbox.exec("true") },
    {
      name: "setEgress",
      input: z.object({ policy: z.union([z.literal("none"), z.object({ allow: z.array(z.string()) })]).nullable() }),
      run: async ({ policy }, { sandbox }) => sandbox.setEgress(policy),
    },
    {
      name: "setEgressOfFresh",
      input: z.object({ policy: z.union([z.literal("none"), z.object({ allow: z.array(z.string()) })]).nullable() }),
      run: async ({ policy }, { sandboxes }) => (await sandboxes.fresh()).setEgress(policy),
    },
    { name: "fresh", run: async (_, { sandboxes }) => (await sandboxes.fresh()).image },
  ],
}) as EnvironmentDefinition;

const IMAGES = { isolation: "shared", taskSandboxes: { images: ["team/*"], atOnce: 2 } };

async function open(deployConfig: object = IMAGES, options: Parameters<typeof openTestServer>[1] = {}) {
  const world = openWorld({ images: true, egress: true }, environment);
  const ref = await world.publish(ada, "shop", deployConfig);
  const tasks = async () => (await world.engine.list()).filter(({ labels }) => labels.role === "task");
  return { world, ref, tasks, server: openTestServer(world, options) };
}

it("sandboxes are opened with the image, the limits and the policy of the environment, and closed by name", async () => {
  const { world, ref, tasks, server } = await open({
    isolation: "shared",
    taskSandboxes: { images: ["team/*"], memory: "1Gi", cpu: "500m", disk: "2Gi", egress: "open" },
  });
  const row = await server.create(ref, { environment_variables: { IMAGE: "team/one:1" } });
  expect(await server.call(row, "open")).toEqual({ name: "task-2", image: null });
  const limits = { resources: { memoryMb: 1_024, cpus: 0.5, diskMb: 2_048 }, egress: "open" };
  const [first, second] = world.started.filter(({ labels }) => labels.role === "task");
  expect(first).toMatchObject({ image: "team/one:1", ...limits, listening: { kind: "none" }, command: [], variables: {} });
  expect(second).toMatchObject(limits);
  expect(second).not.toHaveProperty("image");
  await server.call(row, "close", { name: "task" });
  expect(await server.call(row, "names")).toEqual(["task-2"]);
  expect(await tasks()).toHaveLength(1);
  await server.instances.end(row.id, "over");
  expect(await tasks()).toEqual([]);
});

it("a sandbox has folders in memory, hosts and a limit of processes, as do fresh ones like it, on engines that give them", async () => {
  const asked = { processes: 64, tmpfs: [{ path: "/run", size_mb: 8, mode: 0o755 }], hosts: [{ name: "a.example", address: "192.0.2.1" }] };
  const request = { name: "task", episode: "e", purpose: "open" } as const;
  const signal = new AbortController().signal;
  const opened = async (tmpfs: boolean) => {
    const world = openWorld({ images: true, tmpfs }, environment);
    const ref = await world.publish(ada, "shop", { ...IMAGES, isolation: "instance" });
    const server = openTestServer(world);
    const { id, slot } = await server.create(ref);
    const { sandboxes } = server.tasks;
    const first = await sandboxes.open(slot?.sandboxId ?? "", id, { ...request, ...asked }, signal);
    await sandboxes.open(slot?.sandboxId ?? "", id, { ...request, name: "fresh", purpose: "fresh", of: first.id }, signal);
    return world.started.slice(-2);
  };
  const expected = { resources: { processes: 64 }, tmpfs: [{ path: "/run", sizeMb: 8, mode: 0o755 }], hosts: asked.hosts };
  expect(await opened(true)).toMatchObject([expected, expected]);
  await expect(opened(false)).rejects.toMatchObject({
    code: "instance.unsupported",
    message: expect.stringContaining("--engine oci or docker"),
  });
});

it("sandboxes have the capabilities of their environment, also fresh ones, unless its code asks for fewer", async () => {
  const world = openWorld({ images: true, capabilities: true }, environment);
  const server = openTestServer(world);
  const docker = await world.publish(ada, "shop", { taskSandboxes: { capabilities: "docker" } });
  const row = await server.create(docker);
  await server.call(row, "open");
  await server.call(row, "fresh");
  await server.call(row, "open", { capabilities: "minimal" });
  const tasks = world.started.filter(({ labels }) => labels.role === "task");
  expect(tasks.map(({ capabilities }) => capabilities)).toEqual(["docker", "docker", "minimal"]);
  // The next server learns it from the label.
  expect(JSON.parse(tasks[0]?.labels.spec ?? "")).toMatchObject({ capabilities: "docker" });
});

it("more capabilities than the environment declares, and an engine that never gives them, are refused with the reason", async () => {
  const { ref, server } = await open();
  await expect(server.call(await server.create(ref), "open", { capabilities: "docker" })).rejects.toThrow(
    /deployConfig\.taskSandboxes\.capabilities of config\.json/,
  );
  const world = openWorld({ images: true }, environment);
  const docker = await world.publish(ada, "shop", { taskSandboxes: { capabilities: "docker" } });
  const other = openTestServer(world);
  const row = await other.create(docker);
  await expect(other.call(row, "open")).rejects.toThrow(/sudo, sshd and chroot.*'memory' never have them.*--engine oci or docker/);
  await other.call(row, "open", { capabilities: "minimal" });
});

it("sandboxes of an episode share a network and a volume, on engines that have networks", async () => {
  const world = openWorld({ images: true, egress: true, networks: true }, environment);
  const server = openTestServer(world);
  const ref = await world.publish(ada, "shop", IMAGES);
  const rows = [await server.create(ref), await server.create(ref)] as const;
  for (const row of rows) for (const name of ["db", "web"]) await server.call(row, "service", { name });
  const tasks = world.started.filter(({ labels }) => labels.role === "task");
  expect(tasks[0]).toMatchObject({
    networks: [{ aliases: ["db"] }],
    volumes: [{ path: "/data", isReadOnly: false }],
    program: { command: ["serve"], user: "app" },
    variables: { A: "1" },
  });
  for (const shared of [tasks.map(({ networks }) => networks?.[0]?.id), tasks.map(({ volumes }) => volumes?.[0]?.id)])
    expect([shared[0] === shared[1], new Set(shared).size]).toEqual([true, 2]);
  // Variables of programs may be secrets.
  expect(JSON.stringify(tasks[0]?.labels)).not.toContain('"A"');

  const { server: other, ref: same } = await open();
  await expect(other.call(await other.create(same), "service", { name: "db" })).rejects.toThrow(/'memory' of this server.*--engine docker/);
});

it("what a running sandbox may connect to is changed within the policy of the environment, and fresh ones are like it", async () => {
  const world = openWorld({ images: true, egress: true, changesEgress: true }, environment);
  const server = openTestServer(world);
  const ref = await world.publish(ada, "shop", { ...IMAGES, taskSandboxes: { ...IMAGES.taskSandboxes, egress: { allow: ["a.example"] } } });
  const row = await server.create(ref, { environment_variables: { IMAGE: "team/one:1" } });
  const egressOfFresh = async () => {
    await server.call(row, "fresh");
    await server.call(row, "close", { name: "fresh" });
    return world.started.at(-1)?.egress;
  };
  expect(await egressOfFresh()).toEqual({ allow: ["a.example"] });
  await server.call(row, "setEgress", { policy: "none" });
  expect(await egressOfFresh()).toBe("none");
  await expect(server.call(row, "setEgress", { policy: { allow: ["b.example"] } })).rejects.toThrow("'b.example'");
  await server.call(row, "setEgress", { policy: null });
  expect(await egressOfFresh()).toEqual({ allow: ["a.example"] });
  const [task] = (await world.engine.list()).filter(({ labels }) => labels.role === "task");
  expect(task).toMatchObject({ policies: ["none", { allow: ["a.example"] }] });

  const { server: other, ref: same } = await open();
  const still = await other.create(same, { environment_variables: { IMAGE: "team/one:1" } });
  await expect(other.call(still, "setEgress", { policy: "none" })).rejects.toThrow(
    "the engine 'memory' of this server sets them at its start",
  );
});

it("a fresh sandbox may connect where rewards may, also after its policy was narrowed and set back", async () => {
  const world = openWorld({ images: true, egress: true, changesEgress: true }, environment);
  const server = openTestServer(world);
  const egress = { allow: ["agent.example"] };
  const ref = await world.publish(ada, "shop", { ...IMAGES, egress, rewardEgress: { allow: ["judge.example"] } });
  const row = await server.create(ref, { environment_variables: { IMAGE: "team/one:1" } });
  const policiesOfFresh = async (policy: unknown) => {
    await server.call(row, "setEgressOfFresh", { policy });
    const fresh = (await world.engine.list()).find(({ labels }) => labels.role === "task" && labels.name === "fresh");
    await server.call(row, "close", { name: "fresh" });
    return [world.started.at(-1)?.egress, ...(fresh as unknown as { policies: unknown[] }).policies];
  };
  expect(await policiesOfFresh(null)).toEqual([{ allow: ["judge.example"] }, { allow: ["judge.example"] }]);
  expect(await policiesOfFresh("none")).toEqual([{ allow: ["judge.example"] }, "none"]);
  await expect(server.call(row, "setEgressOfFresh", { policy: egress })).rejects.toThrow("which neither deployConfig.rewardEgress nor");
  // A request that narrows the environment's policy narrows that of rewards.
  const narrowed = await server.create(ref, { egress: "none", environment_variables: { IMAGE: "team/one:1" } }).catch(String);
  expect(narrowed).toContain("instances share a process");
});

it("a second container has the image of the datasource, and is opened before every episode", async () => {
  const { ref, tasks, server } = await open({ podTemplate: "DualContainer", imagePrefix: "team/tasks" });
  const row = await server.create(ref, { datasource: "one" });
  const images = async () => (await tasks()).map(({ labels }) => JSON.parse(labels.spec ?? "").image);
  expect(await images()).toEqual(["team/tasks:one"]);
  const [first] = await tasks();
  await server.instances.reset(row.id, {}, { caller: ada, signal: server.signal });
  await expect.poll(async () => (await tasks()).map(({ id }) => id)).not.toContain(first?.id);
  expect(await images()).toEqual(["team/tasks:one"]);
  expect(await server.call(row, "fresh")).toBe("team/tasks:one");
  await server.instances.end(row.id, "over");
  expect(await tasks()).toEqual([]);
});

it("limits of an environment and of the server are errors that name the setting", async () => {
  const { ref, server } = await open(IMAGES, { taskLimits: { perOwner: 3 } });
  const [one, two] = [await server.create(ref), await server.create(ref)];
  await server.call(one, "open");
  await expect(server.call(one, "open", { image: "other/one" })).rejects.toThrow(
    /deployConfig\.taskSandboxes\.images .* which lists team\/\*/,
  );
  await expect(server.call(one, "open", { image: "docker-archive:/etc/passwd" })).rejects.toThrow(/is not an image name/);
  await server.call(one, "open", { image: "team/two:1" });
  await expect(server.call(one, "open")).rejects.toThrow(/deployConfig\.taskSandboxes\.atOnce/);
  await server.call(two, "open");
  await expect(server.call(two, "open")).rejects.toThrow(/maxTaskSandboxes/);
  await expect(server.call(two, "exec")).rejects.toThrow("the engine 'memory' runs no commands in sandboxes");
});

it("an environment without a declaration, and an engine without images, say what to change", async () => {
  const { world, ref, server } = await open({ isolation: "shared" });
  await expect(server.call(await server.create(ref), "open")).rejects.toThrow(/deployConfig\.taskSandboxes\.images of config\.json/);
  await expect(server.call(await server.create(ref), "exec")).rejects.toThrow(/declares no sandboxes/);
  const plain = openWorld({}, environment);
  const dual = await plain.publish(ada, "shop", { templateType: "dualContainer" });
  await expect(openTestServer(plain).create(dual)).rejects.toThrow(/runs no images; start the server with --engine oci or docker/);
  expect((await world.engine.list()).some(({ labels }) => labels.role === "task")).toBe(false);
});

it("nothing is left of a setup that failed, of a process that ended, and of an instance that expired", async () => {
  const { world, ref, tasks, server } = await open();
  const variables = { IMAGE: "team/one:1" };
  await expect(server.create(ref, { environment_variables: { ...variables, FAIL: "no luck" } })).rejects.toThrow("no luck");
  await expect.poll(tasks).toEqual([]);
  const row = await server.create(ref, { environment_variables: variables, ttl: "1m" });
  expect(await tasks()).toHaveLength(1);
  world.later(61);
  await server.instances.sweep();
  await expect.poll(tasks).toEqual([]);
  const other = await server.create(ref, { environment_variables: variables });
  await world.engine.crash(other.slot?.sandboxId ?? "", "out of memory");
  await expect.poll(tasks).toEqual([]);
  expect((await server.instances.get(row.id, ada)).status).toBe("Terminated");
});

it("a sandbox that ended by itself is an error of the platform with the reason", async () => {
  const { world, ref, tasks, server } = await open();
  const row = await server.create(ref, { environment_variables: { IMAGE: "team/one:1" } });
  const [task] = await tasks();
  await world.engine.crash(task?.id ?? "", "the disk was full");
  await expect.poll(tasks).toEqual([]);
  await expect(server.call(row, "fresh")).rejects.toMatchObject({
    code: "sandbox.lost",
    message: expect.stringContaining("the disk was full"),
  });
});

it("the next server keeps the sandboxes of instances that it adopts, connects to their processes, and destroys all others", async () => {
  const { world, ref, tasks, server } = await open();
  const variables = { IMAGE: "team/one:1" };
  const row = await server.create(ref, { environment_variables: variables });
  const lost = await server.create(ref, { environment_variables: variables });
  expect(await tasks()).toHaveLength(2);
  server.links.close();
  await server.maintenance.abandon();
  await world.engine.crash((await tasks()).find(({ labels }) => labels.instance === lost.id)?.id ?? "", "gone");
  const next = openTestServer(world);
  await next.maintenance.open();
  expect(await next.call(await next.instances.get(row.id, ada), "open")).toMatchObject({ name: "task-2" });
  await next.instances.end(row.id, "over");
  await next.instances.end(lost.id, "over");
  expect(await tasks()).toEqual([]);
});

it("calls wait while the connection is opened again", async () => {
  const { ref, server } = await open();
  const row = await server.create(ref, { environment_variables: { IMAGE: "team/one:1" } });
  const sandbox = await server.slots.find(row.slot?.sandboxId ?? "");
  server.links.close();
  const opened = server.call(row, "open");
  if (sandbox !== null) server.links.keep(sandbox);
  expect(await opened).toMatchObject({ name: "task-2" });
});

it("a process opens sandboxes for its own instances only", async () => {
  const { ref, server } = await open({ ...IMAGES, isolation: "instance" });
  const [one, two] = [await server.create(ref), await server.create(ref)];
  const request = { name: "task", episode: "e", purpose: "open" } as const;
  const signal = new AbortController().signal;
  await expect(server.tasks.sandboxes.open(one.slot?.sandboxId ?? "", two.id, request, signal)).rejects.toMatchObject({
    code: "instance.not_found",
  });
  const { id } = await server.tasks.sandboxes.open(two.slot?.sandboxId ?? "", two.id, request, signal);
  await expect(server.tasks.sandboxes.use(one.slot?.sandboxId ?? "", two.id, id, signal)).rejects.toMatchObject({
    code: "instance.not_found",
  });
  await expect(server.tasks.sandboxes.use(one.slot?.sandboxId ?? "", one.id, id, signal)).rejects.toMatchObject({ code: "sandbox.lost" });
});

it("a process removes the stored sandboxes of its own instances only", async () => {
  const world = openWorld({ images: true, snapshots: ["files"] }, environment);
  const ref = await world.publish(ada, "shop", { ...IMAGES, isolation: "instance" });
  const server = openTestServer(world);
  const { sandboxes } = server.tasks;
  const [one, two] = [await server.create(ref), await server.create(ref)];
  const [host = "", other = ""] = [one, two].map(({ slot }) => slot?.sandboxId);
  const signal = new AbortController().signal;
  const { id } = await sandboxes.open(host, one.id, { name: "task", episode: "e", purpose: "open" }, signal);
  const snapshot = await sandboxes.store(host, one.id, id, signal);
  await sandboxes.removeSnapshot(snapshot, other);
  expect(world.engine.snapshotCount).toBe(1);
  await sandboxes.removeSnapshot(snapshot, host);
  expect(world.engine.snapshotCount).toBe(0);
});

it("a stored sandbox is opened only as a copy, and only by the instances of its owner", async () => {
  const world = openWorld({ images: true, snapshots: ["files"] }, environment);
  const ref = await world.publish(ada, "shop", { ...IMAGES, isolation: "instance" });
  const server = openTestServer(world);
  const { sandboxes } = server.tasks;
  const [mine, foreign] = [await server.create(ref), await server.create(ref, {}, bob)];
  const [host = "", other = ""] = [mine, foreign].map(({ slot }) => slot?.sandboxId);
  const signal = new AbortController().signal;
  const request = { name: "task", episode: "e", purpose: "open" } as const;
  const { id } = await sandboxes.open(host, mine.id, request, signal);
  const snapshot = await sandboxes.store(host, mine.id, id, signal);
  const before = world.started.length;
  for (const purpose of ["open", "second"] as const)
    await expect(sandboxes.open(other, foreign.id, { ...request, purpose, snapshot }, signal)).rejects.toMatchObject({
      code: "request.invalid",
      message: expect.stringContaining("does not start from a snapshot"),
    });
  const own = await sandboxes.open(other, foreign.id, request, signal);
  await expect(sandboxes.open(other, foreign.id, { ...request, purpose: "fresh", of: own.id, snapshot }, signal)).rejects.toMatchObject({
    code: "request.invalid",
  });
  await expect(sandboxes.open(other, foreign.id, { ...request, purpose: "copy", snapshot }, signal)).rejects.toMatchObject({
    code: "sandbox.lost",
  });
  expect(world.started).toHaveLength(before + 1);
  expect(await sandboxes.open(host, mine.id, { ...request, purpose: "copy", snapshot }, signal)).toHaveProperty("id");
});

it("an instance that names many episodes has no more sandboxes than the server allows one instance", async () => {
  const { ref, server } = await open({ ...IMAGES, isolation: "instance" }, { taskLimits: { perInstance: 3 } });
  const row = await server.create(ref);
  const signal = new AbortController().signal;
  const openIn = (episode: string) =>
    server.tasks.sandboxes.open(row.slot?.sandboxId ?? "", row.id, { name: "task", episode, purpose: "open" }, signal);
  for (const episode of ["a", "a", "b"]) await openIn(episode);
  // Before, twice as many as one episode may have were open: four.
  for (const episode of ["b", "c"])
    await expect(openIn(episode)).rejects.toMatchObject({
      message: expect.stringContaining("the server's limit (taskSandboxesPerInstance)"),
    });
});

it("the first sandbox of an instance needs memory that others have not taken, and further ones do not", async () => {
  const variables = { environment_variables: { IMAGE: "team/one:1" } };
  const { ref, server, tasks } = await open(IMAGES, { taskLimits: { totalMemoryMb: 130, defaultMemoryMb: 64 } });
  const one = await server.create(ref, variables);
  const two = await server.create(ref, variables);
  await expect(server.create(ref, variables)).rejects.toMatchObject({
    code: "sandbox.no_capacity",
    message: expect.stringMatching(/64 MiB, and 128 of 130 MiB are taken \(taskMemoryTotalMb\)/),
  });
  expect(await server.call(one, "fresh")).toBe("team/one:1");
  await server.instances.end(one.id, "over");
  await server.create(ref, variables);
  expect(await tasks()).toHaveLength(2);
  await server.instances.end(two.id, "over");
});

describe("while the machine is short of memory and others have sandboxes", () => {
  const variables = { environment_variables: { IMAGE: "team/one:1" } };
  const ENOUGH = 2 * 1024 ** 2;

  /** An instance with a sandbox, and a gate that opens once more, for the start of the next instance itself. */
  async function openShort({ deployConfig = IMAGES as object, pollMs = 1, startTimeoutMs = 20_000 } = {}) {
    const memory = { available: ENOUGH, admitsNext: false };
    const availableBytes = () => {
      const { admitsNext, available } = memory;
      memory.admitsNext = false;
      return admitsNext ? ENOUGH : available;
    };
    const memoryGate = new MemoryGate({ minBytes: 1024 ** 2, availableBytes, pollMs });
    const opened = await open(deployConfig, { memoryGate, startTimeoutMs });
    const request = deployConfig === IMAGES ? variables : {};
    const idle = await opened.server.create(opened.ref);
    await opened.server.create(opened.ref, request);
    Object.assign(memory, { available: 10, admitsNext: true });
    return { ...opened, memory, request, idle };
  }

  for (const [what, deployConfig] of [
    ["that opens a sandbox in its setup", IMAGES],
    ["with a second container", { podTemplate: "DualContainer" }],
  ] as const)
    it(`a start ${what} waits, with the reason in its events`, async () => {
      const { server, ref, memory, request, tasks } = await openShort({ deployConfig });
      const before = (await tasks()).length;
      const starting = server.create(ref, request);
      await expect.poll(() => server.changes.at(-1)?.events.at(-1)?.what).toMatch(/waiting for memory: the machine has 0 MiB/);
      expect(await tasks()).toHaveLength(before);
      memory.available = ENOUGH;
      expect(await starting).toMatchObject({ status: "Running" });
      expect(await tasks()).toHaveLength(before + 1);
    });

  it("a start that waits longer than it may fails with the reason, and can be tried again", async () => {
    const { server, ref, request, tasks } = await openShort({ startTimeoutMs: 1_000 });
    await expect(server.create(ref, request)).rejects.toMatchObject({
      code: "sandbox.no_capacity",
      message: expect.stringMatching(/did not start within 1 s .*waiting for memory.*minAvailableMemoryMb/),
    });
    expect(await tasks()).toHaveLength(1);
  });

  it("the first sandbox of an episode that has begun is refused, and opened when there is memory, also if a start waits for its turn", async () => {
    const { server, ref, memory, request, idle } = await openShort({ pollMs: 60_000, startTimeoutMs: 3_000 });
    memory.admitsNext = false;
    await expect(server.call(idle, "open")).rejects.toMatchObject({
      code: "sandbox.no_capacity",
      message: expect.stringContaining("minAvailableMemoryMb"),
    });
    const starting = server.create(ref, request).catch(() => null);
    await expect.poll(() => server.changes.at(-1)?.events.at(-1)?.what).toMatch(/waiting for memory/);
    memory.available = ENOUGH;
    expect(await server.call(idle, "open")).toMatchObject({ name: "task" });
    await server.instances.close(0);
    await starting;
  });
});

it("a sandbox that needs more than all memory runs alone", async () => {
  const { ref, server } = await open(IMAGES, { taskLimits: { totalMemoryMb: 64, defaultMemoryMb: 128 } });
  const variables = { environment_variables: { IMAGE: "team/one:1" } };
  await server.create(ref, variables);
  await expect(server.create(ref, variables)).rejects.toMatchObject({ code: "sandbox.no_capacity" });
});
