import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { CreateInstanceRequest } from "@aenv/contract";
import type { MemorySandbox } from "@aenv/sandbox";
import { expect, it } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

async function publishImage(world: ReturnType<typeof openWorld>, image: string, deployConfig: object, more = {}): Promise<string> {
  const publication = { name: "shop", version: "1.0.0", artifacts: [{ type: "image", content: image }], deployConfig, ...more };
  await world.hub.publish(publication, ada, {});
  return "shop@1.0.0";
}

it("an environment with an image and a port runs the image's own server, and gets all requests as they are", async () => {
  const world = openWorld({ images: true });
  const { create } = openTestServer(world);
  const ref = await publishImage(world, "registry.example/team/shop:1", { port: 9000 });
  const row = await create(ref, { environment_variables: { GREETING: "hello" } });
  expect(row).toMatchObject({ status: "Running", slot: { prefix: "", isOwnSandbox: true } });
  expect(world.started).toEqual([
    expect.objectContaining({
      image: "registry.example/team/shop:1",
      command: [],
      listening: { kind: "port", port: 9000, healthPath: null },
      variables: expect.objectContaining({ GREETING: "hello" }),
    }),
  ]);
});

it("an environment with an image and no port is a sandbox for commands only", async () => {
  const world = openWorld({ images: true });
  const { create } = openTestServer(world);
  await create(await publishImage(world, "team/shop", {}));
  expect(world.started).toEqual([expect.objectContaining({ image: "team/shop", listening: { kind: "none" } })]);
});

it("an instance of an image survives a restart of the server", async () => {
  const world = openWorld({ images: true });
  const first = openTestServer(world);
  const row = await first.create(await publishImage(world, "team/shop", { port: 9000 }));
  first.maintenance.abandon();
  const second = openTestServer(world);
  expect(await second.maintenance.open()).toMatchObject({ adopted: 1, failed: 0 });
  expect(await second.instances.get(row.id, ada)).toMatchObject({ status: "Running" });
});

it("an image with a second container shares a folder with it, and it is kept by the next server and ends with its instance", async () => {
  const world = openWorld({ images: true, folders: true });
  const first = openTestServer(world);
  const deployConfig = { port: 9000, podTemplate: "DualContainer", imagePrefix: "team/tasks", warmStart: true };
  const row = await first.create(await publishImage(world, "team/shop", deployConfig), { datasource: "one" });
  const mounts = [{ source: expect.stringContaining(row.id), target: "/shared", isReadOnly: false }];
  expect(world.started).toEqual([
    expect.objectContaining({ image: "team/shop", variables: expect.objectContaining({ AENV_TYPE: "dualContainer" }), mounts }),
    expect.objectContaining({ image: "team/tasks:one", mounts, labels: expect.objectContaining({ role: "task", instance: row.id }) }),
  ]);
  const context = { caller: ada, signal: first.signal };
  const refused = { code: "instance.unsupported", message: expect.stringContaining("second container") };
  await expect(first.instances.store(row.id, { name: "kept", fidelity: "files" }, context)).rejects.toMatchObject(refused);
  await first.maintenance.abandon();
  const next = openTestServer(world);
  expect(await next.maintenance.open()).toMatchObject({ adopted: 1, failed: 0 });
  expect(await next.tasks.sandboxes.findNamed(row.id, "task")).toMatchObject({ labels: { instance: row.id } });
  await next.instances.end(row.id, "over");
  expect(await world.engine.list()).toEqual([]);
  expect(existsSync(join(world.home, "shared", row.id))).toBe(false);
  expect(next.failures).toEqual([]);
});

it("nothing is left of a program whose second container does not start", async () => {
  const world = openWorld({ images: true, folders: true });
  const server = openTestServer(world, { taskLimits: { perOwner: 0 } });
  const ref = await publishImage(world, "team/shop", { port: 9000, podTemplate: "DualContainer" });
  await expect(server.create(ref)).rejects.toMatchObject({ code: "quota.exceeded", message: expect.stringContaining("maxTaskSandboxes") });
  expect(await world.engine.list()).toEqual([]);
  expect(readdirSync(join(world.home, "shared"))).toEqual([]);
});

for (const [what, deployConfig, listening] of [
  ["with a server", { port: 9000, healthPath: "/ready" }, { kind: "port", port: 9000, healthPath: "/ready" }],
  ["without a server", {}, { kind: "none" }],
] as const) {
  it(`an instance of an image ${what} is forked, stored and started again with its files or its memory`, async () => {
    const world = openWorld({ images: true, snapshots: ["files", "memory"] });
    const server = openTestServer(world);
    const context = { caller: ada, signal: server.signal };
    const variables = { GREETING: "hello" };
    const parent = await server.create(await publishImage(world, "team/shop", deployConfig), { environment_variables: variables });
    const sandbox = (await server.slots.find(parent.slot?.sandboxId ?? "")) as MemorySandbox;
    sandbox.saveMemory = async () => "its memory";
    sandbox.files.set("/kept", "before");
    for (const fidelity of ["files", "memory"] as const) {
      world.started.length = 0;
      const stored = await server.instances.store(parent.id, { name: fidelity, fidelity }, context);
      const rows = [
        ...(await server.instances.fork(parent.id, 2, context, fidelity)),
        await server.create("shop", { snapshot: stored.id, ...(fidelity === "files" && { environment_variables: variables }) }),
      ];
      expect(rows.map(({ slot }) => slot)).toEqual(
        rows.map(() => ({ ...parent.slot, sandboxId: expect.any(String), address: expect.any(Object) })),
      );
      expect(world.started).toHaveLength(3);
      for (const { id, slot } of rows) {
        const spec = world.started.find((one) => one.id === slot?.sandboxId);
        expect(spec).toMatchObject({ listening, labels: { role: "program", instance: id }, snapshot: expect.any(String) });
        if (fidelity === "files") expect(spec?.variables).toMatchObject({ ...variables, envNAME: "shop", AENV_TYPE: "singleContainer" });
        const copy = (await server.slots.find(slot?.sandboxId ?? "")) as MemorySandbox;
        expect([copy.files.get("/kept"), copy.restored]).toEqual(["before", fidelity === "memory" ? "its memory" : null]);
      }
    }
    const refused = { code: "instance.unsupported", message: expect.stringContaining("use the fidelity files or memory") };
    await expect(server.instances.fork(parent.id, 1, context, "state")).rejects.toMatchObject(refused);
    // As much as can be copied, if the request does not say it.
    const again = { ...context, idempotencyKey: "one" };
    const [most] = await server.instances.fork(parent.id, 1, again);
    expect(most?.forkFidelity).toBe("memory");
    expect(await server.instances.fork(parent.id, 1, again)).toMatchObject([{ id: most?.id }]);
    await expect(server.instances.store(parent.id, { name: "state" }, context)).rejects.toMatchObject(refused);
    await expect(server.instances.snapshot(parent.id, context)).rejects.toMatchObject(refused);
  });
}

it("copies of a program with its files have the arguments that it was started with, also copies of copies", async () => {
  const world = openWorld({ images: true, snapshots: ["files"] });
  const server = openTestServer(world);
  const context = { caller: ada, signal: server.signal };
  const ref = await publishImage(world, "team/shop", { arguments: ["--usual"] }, { runtime: { command: ["serve"] } });
  for (const [request, args] of [
    [{}, ["--usual"]],
    [{ arguments: ["--fast"] }, ["--fast"]],
  ] as const) {
    const { id } = await server.create(ref, request as CreateInstanceRequest);
    const stored = await server.instances.store(id, { fidelity: "files" }, context);
    const fromStored = await server.create("shop", { snapshot: stored.id });
    const [fork] = await server.instances.fork(fromStored.id, 1, context, "files");
    await server.instances.fork(fork?.id ?? "", 1, context, "files");
    expect(world.started.splice(0).map(({ command }) => command)).toEqual(Array(4).fill(["serve", ...args]));
  }
});

it("a copy of a program that the engine cannot make is refused before anything is stored or started", async () => {
  const world = openWorld({ images: true });
  const server = openTestServer(world);
  const context = { caller: ada, signal: server.signal };
  const { id } = await server.create(await publishImage(world, "team/shop", { port: 9000 }));
  for (const [fidelity, message] of [
    ["state", "start the server with --engine oci"],
    ["files", "the engine 'memory' of this server copies no program"],
    ["memory", "the engine 'memory' of this server copies no program"],
  ] as const) {
    const refused = { code: "instance.unsupported", message: expect.stringContaining(message) };
    await expect(server.instances.fork(id, 1, context, fidelity)).rejects.toMatchObject(refused);
    await expect(server.instances.store(id, { name: "it", fidelity }, context)).rejects.toMatchObject(refused);
  }
  expect(server.changes.map((row) => row.id).filter((one) => one !== id)).toEqual([]);
});

it("a program that has overwritten its variables is not forked with its files, because the fork would lack them", async () => {
  const world = openWorld({ images: true, snapshots: ["files"] });
  const server = openTestServer(world);
  const { id, slot } = await server.create(await publishImage(world, "team/shop", { port: 9000 }));
  const sandbox = (await server.slots.find(slot?.sandboxId ?? "")) as MemorySandbox;
  sandbox.programVariables = async () => ({});
  const forking = server.instances.fork(id, 1, { caller: ada, signal: server.signal }, "files");
  await expect(forking).rejects.toMatchObject({
    code: "instance.unsupported",
    message: expect.stringContaining("has overwritten the variables"),
  });
});

it.each([
  [false, "team/shop", "cannot run; start the server with --engine oci or docker"],
  [true, "oci:/home/ada/layout", "is not a name in a registry"],
  [true, "docker-daemon:secret:latest", "is not a name in a registry"],
  [true, "docker-daemon:secret", "is not a name in a registry"],
  [true, "docker-daemon:5000/team/secret:1", "is not a name in a registry"],
  [true, "docker-archive:/home/ada/image.tar", "is not a name in a registry"],
  [true, "docker-archive:secret", "is not a name in a registry"],
  [true, "oci-archive:/home/ada/image.tar", "is not a name in a registry"],
  [true, "dir:/home/ada/image", "is not a name in a registry"],
  [true, "containers-storage:[/home/ada]secret", "is not a name in a registry"],
  [true, "docker://team/shop", "is not a name in a registry"],
])("an image that cannot run here is refused with the reason (images: %s, %s)", async (images, image, message) => {
  const world = openWorld({ images });
  const { create } = openTestServer(world);
  const creating = create(await publishImage(world, image, { port: 9000 }));
  await expect(creating).rejects.toMatchObject({ code: "instance.unsupported", message: expect.stringContaining(message) });
});
