import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import { describe, expect, it, vi } from "vitest";
import { ada, bob, openTestServer, openWorld } from "./fixtures/test-server.ts";
import { isLive } from "./row.ts";

const SHARED = { isolation: "shared" };
const APART = { isolation: "instance" };

async function open(deployConfig: object, options = {}) {
  const world = openWorld();
  const server = openTestServer(world, options);
  return { world, server, ref: await world.publish(ada, "shop", deployConfig) };
}

describe("an instance", () => {
  it.each([SHARED, APART])("runs when it is healthy, and releases its slot when it is ended: %j", async (deployConfig) => {
    const { world, server, ref } = await open(deployConfig);
    const row = await server.create(ref);
    expect(row).toMatchObject({ status: "Running", owner: "ada", ttl: "30m", expiresAt: "2026-01-12T03:55:46.000Z" });
    expect([await server.count(row), await server.count(row)]).toEqual([1, 2]);
    await server.instances.destroy(row.id, ada);
    await server.instances.destroy(row.id, ada);
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Terminated", reason: "deleted by its owner", slot: null });
    await expect(server.count(row)).rejects.toThrow(deployConfig === SHARED ? "not found in this process" : "cannot be reached");
    expect(await world.engine.list()).toHaveLength(deployConfig === SHARED ? 1 : 0);
  });

  it("whose setup fails reports the reason for ten minutes", async () => {
    const { world, server, ref } = await open(APART);
    const failing = server.create(ref, { environment_variables: { FAIL: "no orders today" } });
    await expect(failing).rejects.toMatchObject({ code: "instance.setup_failed", message: "setup of 'probe' failed: no orders today" });
    const [failed] = server.changes.filter(({ status }) => status === "Failed");
    const id = failed?.id ?? "";
    world.later(9 * 60);
    await server.instances.sweep();
    expect(await server.instances.get(id, ada)).toMatchObject({
      status: "Failed",
      reason: "setup of 'probe' failed: no orders today",
      reasonCode: "instance.setup_failed",
    });
    await expect(server.instances.get(id, bob)).rejects.toMatchObject({ code: "instance.not_found" });
    world.later(61);
    await server.instances.sweep();
    await expect(server.instances.get(id, ada)).rejects.toMatchObject({ code: "instance.not_found" });
    expect(await world.engine.list()).toEqual([]);
  });

  it("that is ended during its start stays ended, and its late sandbox is destroyed", async () => {
    const { world, server, ref } = await open(APART);
    const go = world.gate("setup");
    const context = { caller: ada, signal: server.signal };
    const { id } = await server.instances.create({ envName: ref, environment_variables: { GATE: "setup" } }, context);
    const started = server.instances.started(id, 5_000, ada);
    await vi.waitFor(async () => expect(await world.engine.list()).toHaveLength(1));
    expect(await server.instances.started(id, 1, ada)).toMatchObject({ status: "Creating" });
    await server.instances.destroy(id, ada);
    go();
    await expect(started).rejects.toMatchObject({ code: "instance.gone" });
    expect(await server.instances.get(id, ada)).toMatchObject({ status: "Terminated" });
    await vi.waitFor(async () => expect(await world.engine.list()).toEqual([]));
  });

  it("in a host that crashes fails with the cause; instances in other hosts do not", async () => {
    const { world, server, ref } = await open(SHARED, { maxHosts: 1 });
    const other = await world.publish(ada, "bank", SHARED);
    const [first, second] = [await server.create(ref), await server.create(ref)];
    const [third, fourth] = [await server.create(other), await server.create(ref, {}, bob)];
    await world.engine.crash(first.slot?.sandboxId ?? "", "exit code 7: out of ideas");
    for (const { id } of [first, second]) {
      await vi.waitFor(async () =>
        expect(await server.instances.get(id, ada)).toMatchObject({
          status: "Failed",
          reason: "exit code 7: out of ideas",
          reasonCode: null,
        }),
      );
    }
    expect(await server.instances.get(third.id, ada)).toMatchObject({ status: "Running" });
    expect(await server.instances.get(fourth.id, bob)).toMatchObject({ status: "Running" });
    expect((await server.create(ref)).slot?.sandboxId).not.toBe(first.slot?.sandboxId);
    expect(await server.rows.count("live", "yes")).toBe(3);
  });

  it("whose sandbox crashes during setup reports the exit reason of the sandbox", async () => {
    const { world, server, ref } = await open(APART);
    world.gate("setup");
    const starting = server.create(ref, { environment_variables: { GATE: "setup" } });
    const [sandbox] = await vi.waitFor(async () => {
      const found = await world.engine.list();
      expect(found).toHaveLength(1);
      return found;
    });
    // Only after it has loaded the bundle: before that, another process would replace it.
    await vi.waitFor(() => expect(server.slots.holds(sandbox?.id ?? "")).toBe(true));
    await world.engine.crash(sandbox?.id ?? "", "exit code 9: setup knew better");
    await expect(starting).rejects.toThrow("exit code 9: setup knew better");
  });

  it.each([SHARED, APART])("whose setup hangs fails after the start timeout, with the cause, and releases its slot: %j", async (config) => {
    const { world, server, ref } = await open(config, { startTimeoutMs: 300, maxHosts: 1 });
    world.gate("setup");
    const starting = server.create(ref, { environment_variables: { GATE: "setup" } });
    const message = "shop@1.0.0 did not start within 0.3 s (the server's startTimeout): its setup has not finished yet";
    await expect(starting).rejects.toMatchObject({ code: "instance.start_timeout", message });
    const [failed] = server.changes.filter(({ status }) => status === "Failed");
    expect(failed).toMatchObject({ reason: message, reasonCode: "instance.start_timeout", slot: null });
    // The shared process is empty now, so it may be closed.
    await server.slots.closeIdleHosts(0);
    expect(await world.engine.list()).toEqual([]);
    expect(await server.create(ref)).toMatchObject({ status: "Running" });
  });

  it("sees its reset aborted when the client disconnects", async () => {
    const { world, server, ref } = await open(APART);
    const row = await server.create(ref);
    const asked = world.hold("/task/reset");
    const client = new AbortController();
    const reset = server.instances.reset(row.id, {}, { caller: ada, signal: client.signal });
    const closed = once(await asked, "close");
    client.abort(new Error("the client went away"));
    await expect(reset).rejects.toThrow("the client went away");
    await closed;
    expect((await server.instances.get(row.id, ada)).events.map(({ what }) => what)).not.toContain("reset");
  });

  it("expires after its ttl, counted anew from each renewal; an invalid ttl is refused", async () => {
    const { world, server, ref } = await open(APART);
    const row = await server.create(ref, { ttl: "10m" });
    world.later(9 * 60);
    expect(await server.instances.renew(row.id, "20m", ada)).toMatchObject({ ttl: "20m", expiresAt: "2026-01-12T03:54:46.000Z" });
    world.later(19 * 60);
    await server.instances.sweep();
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Running" });
    world.later(60);
    await server.instances.sweep();
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Terminated", reason: "its time to live of 20m was over" });
    await expect(server.instances.renew(row.id, "1h", ada)).rejects.toMatchObject({ code: "instance.gone" });
    await expect(server.instances.renew(row.id, "soon", ada)).rejects.toMatchObject({ code: "request.invalid" });
    await expect(server.create(ref, { ttl: "0s" })).rejects.toMatchObject({ code: "request.invalid" });
    expect(await world.engine.list()).toEqual([]);
  });

  it("ends after its idle time, but not during a call", async () => {
    const { world, server, ref } = await open(APART, { idleSeconds: 60 });
    const row = await server.create(ref);
    server.instances.uses.begin(row);
    world.later(300);
    await server.instances.sweep();
    await vi.waitFor(async () =>
      expect(await server.instances.get(row.id, ada)).toMatchObject({ lastUsedAt: world.clock.now.toISOString() }),
    );
    server.instances.uses.end(row);
    await setImmediate();
    world.later(59);
    await server.instances.sweep();
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Running" });
    world.later(1);
    await server.instances.sweep();
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Terminated", reason: "it was idle for 60 s" });
  });
});

describe("an idempotency key", () => {
  const context = { caller: ada, signal: new AbortController().signal, idempotencyKey: "k" };

  it("makes one instance, however often it is sent, also concurrently", async () => {
    const { world, server, ref } = await open(APART);
    const rows = await Promise.all(Array.from({ length: 20 }, () => server.instances.create({ envName: ref }, context)));
    const ids = new Set(rows.map(({ id }) => id));
    expect(ids.size).toBe(1);
    await server.instances.started(rows[0]?.id ?? "", 5_000, ada);
    expect(await world.engine.list()).toHaveLength(1);
    await expect(server.instances.create({ envName: ref, ttl: "1h" }, context)).rejects.toMatchObject({ code: "request.conflict" });
    const other = await server.instances.create({ envName: ref }, { ...context, caller: bob });
    expect(ids).not.toContain(other.id);
    await server.instances.started(other.id, 5_000, bob);
  });

  it("gives the same failure again, and the same instance even if that has ended", async () => {
    const { world, server, ref } = await open(APART);
    const request = { envName: ref, environment_variables: { FAIL: "no" } };
    for (let time = 0; time < 3; time++) {
      const { id } = await server.instances.create(request, context);
      await expect(server.instances.started(id, 5_000, ada)).rejects.toMatchObject({ code: "instance.setup_failed" });
    }
    const ended = { ...context, idempotencyKey: "other" };
    const { id } = await server.instances.create({ envName: ref }, ended);
    const row = await server.instances.started(id, 5_000, ada);
    await world.engine.crash(row.slot?.sandboxId ?? "", "out of memory");
    await vi.waitFor(async () => expect(await server.instances.get(id, ada)).toMatchObject({ status: "Failed" }));
    expect((await server.instances.create({ envName: ref }, ended)).id).toBe(id);
    expect(await server.instances.started(id, 5_000, ada)).toMatchObject({ status: "Failed", reason: "out of memory" });
    world.later(11 * 60);
    await server.instances.sweep();
    await expect(server.instances.create({ envName: ref }, ended)).rejects.toMatchObject({ code: "instance.gone" });
  });

  it("can be used again if the quota refused its first request", async () => {
    const { server, ref } = await open(APART, { maxInstances: 1 });
    const first = await server.create(ref);
    await expect(server.instances.create({ envName: ref }, context)).rejects.toMatchObject({ code: "quota.exceeded" });
    await server.instances.destroy(first.id, ada);
    const { id } = await server.instances.create({ envName: ref }, context);
    expect(await server.instances.started(id, 5_000, ada)).toMatchObject({ status: "Running" });
  });
});

describe("forks", () => {
  it("with a process of their own use warm processes, and each continues from the state of its parent", async () => {
    const world = openWorld();
    const server = openTestServer(world, { pool: 8 });
    const ref = await world.publish(ada, "probe", { isolation: "instance" });
    const parent = await server.create(ref);
    await server.count(parent);
    const fork = () => server.instances.fork(parent.id, 4, { caller: ada, signal: server.signal });
    const first = await fork();
    await vi.waitFor(() => expect(server.pool.sizes().get(parent.digest)).toEqual({ ready: 4, target: 4 }));
    const waiting = (await world.engine.list()).map(({ id }) => id);
    const second = await fork();
    for (const { slot } of second) expect(waiting).toContain(slot?.sandboxId);
    expect(new Set([parent, ...first, ...second].map(({ slot }) => slot?.sandboxId)).size).toBe(9);
    expect(await Promise.all([...first, ...second].map((one) => server.count(one)))).toEqual(Array(8).fill(2));
    expect(await server.count(parent)).toBe(2);
  });

  it.each([SHARED, APART])("continue from the state of their parent, each on its own: %j", async (deployConfig) => {
    const { world, server, ref } = await open(deployConfig);
    const parent = await server.create(ref, { ttl: "10m", labels: { run: "7" } });
    await server.count(parent);
    world.later(60);
    const forks = await server.instances.fork(parent.id, 3, { caller: ada, signal: server.signal });
    expect(forks.map(({ status }) => status)).toEqual(["Running", "Running", "Running"]);
    expect(forks[0]).toMatchObject({ expiresAt: "2026-01-12T03:36:46.000Z", labels: { run: "7" } });
    expect(new Set(forks.map(({ agentKey }) => agentKey)).size).toBe(3);
    expect(await Promise.all(forks.map((fork) => server.count(fork)))).toEqual([2, 2, 2]);
    expect(await world.engine.list()).toHaveLength(deployConfig === SHARED ? 1 : 4);
  });

  it.each([SHARED, APART])("are all created, or none is: %j", async (deployConfig) => {
    const { world, server, ref } = await open(deployConfig, { maxInstances: 3 });
    const parent = await server.create(ref);
    const context = { caller: ada, signal: server.signal, idempotencyKey: "forks" };
    for (let time = 0; time < 2; time++) {
      await expect(server.instances.fork(parent.id, 3, context)).rejects.toMatchObject({ code: "quota.exceeded" });
    }
    expect(await server.rows.count("live", "yes")).toBe(1);
    expect(await world.engine.list()).toHaveLength(1);
    const [one, two] = await server.instances.fork(parent.id, 2, { ...context, idempotencyKey: "fewer" });
    expect(await server.instances.fork(parent.id, 2, { ...context, idempotencyKey: "fewer" })).toEqual([one, two]);
    expect(await server.rows.count("live", "yes")).toBe(3);
  });

  it.each([SHARED, APART])(
    "with the files or the memory of the sandbox are refused with the reason where that is not possible: %j",
    async (deployConfig) => {
      const { world, server, ref } = await open(deployConfig);
      const parent = await server.create(ref);
      const context = { caller: ada, signal: server.signal };
      const why =
        deployConfig === SHARED
          ? /shares its process with others; set deployConfig.isolation/
          : /the engine 'memory' of this server copies its state only/;
      for (const fidelity of ["files", "memory"] as const) {
        const attempt = server.instances.fork(parent.id, 2, context, fidelity);
        await expect(attempt).rejects.toMatchObject({ code: "instance.unsupported", message: expect.stringMatching(why) });
      }
      expect(await server.rows.count("live", "yes")).toBe(1);
      expect(await world.engine.list()).toHaveLength(1);
      expect(await server.instances.fork(parent.id, 1, context, "state")).toMatchObject([{ forkFidelity: "state" }]);
    },
  );

  it("are made once for concurrent requests with the same key", async () => {
    const { server, ref } = await open(SHARED);
    const parent = await server.create(ref);
    const context = { caller: ada, signal: server.signal, idempotencyKey: "forks" };
    const made = await Promise.all(Array.from({ length: 10 }, () => server.instances.fork(parent.id, 4, context)));
    expect(new Set(made.map((rows) => rows.map(({ id }) => id).join())).size).toBe(1);
    expect(await server.rows.count("live", "yes")).toBe(5);
    await expect(server.instances.fork(parent.id, 5, context)).rejects.toMatchObject({ code: "request.conflict" });
  });

  it("of an instance that has ended or is still starting are refused", async () => {
    const { world, server, ref } = await open(APART);
    const context = { caller: ada, signal: server.signal };
    const ended = await server.create(ref);
    await server.instances.destroy(ended.id, ada);
    await expect(server.instances.fork(ended.id, 1, context)).rejects.toMatchObject({ code: "instance.gone" });
    const go = world.gate("setup");
    const { id } = await server.instances.create({ envName: ref, environment_variables: { GATE: "setup" } }, context);
    await expect(server.instances.fork(id, 1, context)).rejects.toMatchObject({ code: "instance.starting" });
    go();
    await server.instances.started(id, 5_000, ada);
  });
});

describe("instances", () => {
  it("never exceed the quota of an owner, however many are requested at once", async () => {
    const { server, ref } = await open(SHARED, { maxInstances: 10 });
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => server.create(ref)));
    const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(refused).toHaveLength(90);
    expect(refused.every((error) => isPlatformError(error, "quota.exceeded"))).toBe(true);
    expect(await server.rows.count("liveOwner", "ada")).toBe(10);
    expect(await server.create(ref, {}, bob)).toMatchObject({ status: "Running" });
    const limited = { ...bob, maxInstances: 1 };
    await expect(server.create(ref, {}, limited)).rejects.toMatchObject({ code: "quota.exceeded" });
  });

  it("are refused after close, which aborts starts in progress after the grace time", async () => {
    const { world, server, ref } = await open(APART);
    world.gate("setup");
    const context = { caller: ada, signal: server.signal };
    const running = await server.create(ref);
    const { id } = await server.instances.create({ envName: ref, environment_variables: { GATE: "setup" } }, context);
    const started = server.instances.started(id, 5_000, ada);
    started.catch(() => {});
    await server.maintenance.open();
    await server.maintenance.close(20);
    await expect(started).rejects.toMatchObject({ code: "server.draining" });
    await expect(server.instances.create({ envName: ref }, context)).rejects.toMatchObject({ code: "server.draining" });
    expect(await server.instances.get(running.id, ada)).toMatchObject({ status: "Terminated", reason: "the server was stopped" });
    expect([await world.engine.list(), await server.rows.count("live", "yes"), server.failures]).toEqual([[], 0, []]);
  });

  it("report every change of a row", async () => {
    const { server, ref } = await open(APART);
    const row = await server.create(ref);
    await server.instances.destroy(row.id, ada);
    expect(server.changes.map(({ status }) => status)).toEqual(["Creating", "Running", "Terminated"]);
    expect(server.changes.map(isLive)).toEqual([true, true, false]);
    expect(server.changes.at(-1)?.events.map(({ what }) => what)).toEqual(["requested", "running", "deleted by its owner"]);
  });
});
