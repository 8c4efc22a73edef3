import { afterEach, describe, expect, it } from "vitest";
import { EpisodeChildren } from "../children/episode-children.ts";
import { compileEnvironment } from "../compile/environment.ts";
import type { EnvironmentDefinition, SetupContext } from "../definition/definition.ts";
import { EpisodeSandboxes } from "../sandboxes/episode-sandboxes.ts";
import { failureLog } from "./failure-log.ts";
import { Host } from "./host.ts";
import { tearDown } from "./setup.ts";

const hosts: Host[] = [];
let lines: string[] = [];

async function host(definition: object): Promise<Host> {
  const environment = await compileEnvironment(definition as EnvironmentDefinition, { name: "shop", version: "1.0.0" });
  const made = new Host(
    environment,
    failureLog((text) => void lines.push(text)),
  );
  hosts.push(made);
  return made;
}

afterEach(async () => {
  for (const one of hosts.splice(0)) await one.close("the test is over");
  lines = [];
});

/** Code of an environment that waits until the test lets it continue. */
function held<T>() {
  const { promise, resolve } = Promise.withResolvers<T>();
  const entered = Promise.withResolvers<SetupContext>();
  const run = (context: SetupContext) => {
    entered.resolve(context);
    return promise;
  };
  return { run, entered: entered.promise, finish: resolve };
}

const forever = () => new Promise<never>(() => {});

describe("a teardown that fails", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("busy");
      },
    ],
    ["rejects", () => Promise.reject(new Error("busy"))],
  ])("is logged and stops neither a reset nor a delete when it %s", async (_, teardown) => {
    const one = await host({ setup: () => ({}), teardown });
    await one.create({ id: "a" });
    await one.reset("a", {});
    expect(await one.destroy("a")).toBe(true);
    await expect.poll(() => lines).toHaveLength(2);
    for (const line of lines) expect(line).toMatch(/^teardown of instance 'a' failed: Error: busy\n {4}at .*setup\.test\.ts/);
  });

  it("does not hide why the episode could not begin", async () => {
    const one = await host({
      toolsOf: () => {
        throw new Error("no tools");
      },
      teardown: () => Promise.reject(new Error("busy")),
    });
    await expect(one.create({ id: "a" })).rejects.toMatchObject({
      code: "instance.setup_failed",
      message: "toolsOf of 'shop' failed: no tools",
    });
    expect(lines.map((line) => line.split("\n")[0])).toEqual([
      "teardown of instance 'a' failed: Error: busy",
      "toolsOf of instance 'a' failed: Error: no tools",
    ]);
  });

  it("is not waited for longer than its limit", async () => {
    const one = await host({ teardown: forever });
    await tearDown(
      one,
      "a",
      {},
      {
        sandboxes: new EpisodeSandboxes(null, null, "a"),
        children: new EpisodeChildren({ host: null, grants: [], instanceId: "a", seed: 0, task: null }),
      },
      1,
    );
    expect(lines[0]).toContain("teardown of instance 'a' failed: Error: it did not finish within 1 ms");
    hosts.length = 0;
  });
});

describe("a setup that hangs", () => {
  it("fails at its timeout, and its signal fires", async () => {
    const setup = held();
    const one = await host({ setup: setup.run, setupTimeoutMs: 1 });
    await expect(one.create({ id: "a" })).rejects.toMatchObject({
      code: "instance.start_timeout",
      message: expect.stringMatching(/^setup of 'shop' did not finish within 1 ms; .*setupTimeoutMs/),
    });
    expect((await setup.entered).signal.aborted).toBe(true);
    expect(lines).toEqual([]);
  });

  it("is cancelled when its client disconnects, and a state that it returns later is torn down", async () => {
    const setup = held<string>();
    const closed = Promise.withResolvers<string>();
    const one = await host({ setup: setup.run, teardown: closed.resolve });
    const caller = new AbortController();
    const creating = one.create({ id: "a" }, caller.signal);
    const { signal } = await setup.entered;
    caller.abort(new Error("gone"));
    await expect(creating).rejects.toThrow("gone");
    expect(signal.aborted).toBe(true);
    setup.finish("late state");
    expect(await closed.promise).toBe("late state");
    expect(one.find("a")).toBeNull();
  });

  it.each([
    ["is deleted", (one: Host) => one.destroy("a")],
    ["the process ends", (one: Host) => one.close("the server is shutting down")],
  ])("is cancelled when its instance %s", async (_, end) => {
    const setup = held();
    const one = await host({ setup: setup.run });
    const creating = one.create({ id: "a" });
    await setup.entered;
    await Promise.all([expect(creating).rejects.toMatchObject({ code: "request.cancelled" }), end(one)]);
  });

  it("in a reset or a restore keeps the old episode, and does not block a delete", async () => {
    let isFirst = true;
    const closed: unknown[] = [];
    const one = await host({
      setup: () => {
        if (!isFirst) return forever();
        isFirst = false;
        return "first";
      },
      restore: forever,
      snapshot: (state: unknown) => state,
      teardown: (state: unknown) => void closed.push(state),
    });
    const instance = await one.create({ id: "a" });
    const snapshot = await instance.snapshot();
    for (const change of [
      (signal: AbortSignal) => one.reset("a", {}, signal),
      (signal: AbortSignal) => instance.restore(snapshot, signal),
    ]) {
      const caller = new AbortController();
      const changing = change(caller.signal);
      caller.abort(new Error("gone"));
      await expect(changing).rejects.toThrow("gone");
      expect((await instance.snapshot()).data).toBe("first");
    }
    const waiting = [one.reset("a", {}), instance.restore(snapshot)].map((change) =>
      expect(change).rejects.toMatchObject({ code: "request.cancelled", message: "the instance was deleted" }),
    );
    await one.destroy("a");
    await Promise.all(waiting);
    expect(closed).toEqual(["first"]);
    await expect(instance.reset({ task: null, seed: 1, variables: {}, args: [] })).rejects.toMatchObject({ code: "instance.gone" });
  });

  it("in observe fails the reset at its timeout, and tears the new state down", async () => {
    let count = 0;
    const closed: unknown[] = [];
    const one = await host({
      setup: () => ++count,
      observe: forever,
      setupTimeoutMs: 1,
      teardown: (state: unknown) => void closed.push(state),
    });
    await one.create({ id: "a" });
    await expect(one.reset("a", {})).rejects.toMatchObject({ code: "instance.start_timeout" });
    expect(closed).toEqual([2]);
  });

  it("in a snapshot does not block a delete", async () => {
    const one = await host({ snapshot: forever, restore: forever });
    const instance = await one.create({ id: "a" });
    const writing = expect(instance.snapshot()).rejects.toMatchObject({ code: "request.cancelled" });
    await one.destroy("a");
    await writing;
  });

  it("has a limit that is a number of milliseconds", async () => {
    for (const setupTimeoutMs of [0, -1, Number.NaN, 2 ** 31, "5s"]) {
      await expect(host({ setupTimeoutMs })).rejects.toThrow(/^setupTimeoutMs is .*; it must be a number of milliseconds/);
    }
    await (await host({ setup: () => Promise.resolve(1), setupTimeoutMs: Number.POSITIVE_INFINITY })).create();
  });
});
