import { PlatformError } from "@aenv/contract";
import { MemoryEngine, type Sandbox } from "@aenv/sandbox";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { SandboxClients } from "../sandboxes/client.ts";
import { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { bundleGroup, type HostKind, Hosts, type HostsOptions } from "./hosts.ts";
import { Occupancy } from "./occupancy.ts";
import { Pool } from "./pool.ts";
import { Scheduler } from "./scheduler.ts";
import type { BundleRequest } from "./start-request.ts";

const { signal } = new AbortController();

interface TestOptions extends Partial<HostsOptions> {
  /** Called before each start. */
  readonly onStart?: () => Promise<void>;
}

function openHosts({ onStart, ...options }: TestOptions = {}) {
  const engine = new MemoryEngine({
    start: async () => {
      await onStart?.();
      return (_, response) => void response.end(JSON.stringify({ success: true, data: null }));
    },
  });
  const clients = new SandboxClients();
  const clock = { now: 0 };
  const now = () => clock.now;
  const pool = new Pool({
    engine,
    space: new SnapshotSpace(),
    clients,
    runner: ["runner"],
    variables: {},
    serverId: "r-1",
    min: 0,
    limits: { each: 0, perOwner: 0, total: 0 },
    scheduler: new Scheduler({}),
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    resources: { memoryMb: 64 },
    versionStatus: async () => "newest",
    onFillFailure: () => {},
    now,
  });
  const occupancy = new Occupancy({ now, onExit: () => {} });
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const limits = { maxHosts: 3, spreadAt: 4, maxEmpty: 10 };
  const hosts = new Hosts({ occupancy, ...limits, isOccupied: async () => false, onFailure, now, ...options });
  let instances = 0;
  const kindOf = (spec: BundleRequest): HostKind => ({ group: bundleGroup(spec), start: (stop) => pool.claim(spec, stop) });
  const occupy = async (owner: string, bundle: string, more: Partial<BundleRequest> = {}) => {
    const instanceId = `i-${++instances}`;
    const spec = { ...specOf(owner, bundle), ...more };
    const { sandbox, group } = await hosts.occupy(instanceId, kindOf(spec), signal);
    return { id: sandbox.id, instanceId, sandbox, group };
  };
  const release = ({ id, instanceId }: Occupied) => occupancy.release(id, instanceId);
  onTestFinished(async () => {
    await pool.close();
    await clients.close();
    await engine.close();
  });
  const ids = async () => (await engine.list()).map(({ id }) => id).sort();
  return { hosts, engine, clock, failures, ids, occupy, kindOf, release };
}

/** A slot that a test has occupied. */
interface Occupied {
  /** The id of the sandbox. */
  readonly id: string;
  readonly instanceId: string;
}

function specOf(owner: string, name: string): BundleRequest {
  return { owner, folder: `/bundles/${name}`, digest: `sha256:${name}`, variables: {}, environment: null };
}

/** The number of occupants of each sandbox. */
function slotsOf(sandboxes: readonly { readonly id: string }[]): number[] {
  const slots = new Map<string, number>();
  for (const { id } of sandboxes) slots.set(id, (slots.get(id) ?? 0) + 1);
  return [...slots.values()].sort((a, b) => a - b);
}

describe("hosts", () => {
  it("are never more than the limit, however many creations come at once", async () => {
    const { ids, occupy } = openHosts();
    const sandboxes = await Promise.all(Array.from({ length: 200 }, () => occupy("ada", "shop")));
    expect(sandboxes).toHaveLength(200);
    expect((await ids()).length).toBeLessThanOrEqual(3);
  });

  it("fill up evenly, and the next one is started when all have the set number of occupants", async () => {
    const { hosts, occupy, release } = openHosts();
    const sandboxes: Occupied[] = [];
    for (let n = 0; n < 4; n++) sandboxes.push(await occupy("ada", "shop"));
    expect(slotsOf(sandboxes)).toEqual([4]);
    for (let n = 0; n < 26; n++) {
      sandboxes.push(await occupy("ada", "shop"));
      // The next one starts while instances go to those that run.
      await vi.waitFor(() => expect(hosts.size).toBe(Math.min(3, Math.ceil(sandboxes.length / 4))));
    }
    expect(slotsOf(sandboxes)).toEqual([10, 10, 10]);
    for (const slot of sandboxes.slice(0, 4)) release(slot);
    expect((await occupy("ada", "shop")).id).toBe(sandboxes[0]?.id);
  });

  it("that run take all instances while another one cannot be started, which is tried again after a pause", async () => {
    let isFull = false;
    const noCapacity = new PlatformError("sandbox.no_capacity", "no node of the cluster has room for it");
    const onStart = async () => {
      if (isFull) throw noCapacity;
    };
    const { hosts, clock, failures, occupy } = openHosts({ onStart, maxHosts: 2 });
    const first = await occupy("ada", "shop");
    isFull = true;
    const others = await Promise.all(Array.from({ length: 20 }, () => occupy("ada", "shop")));
    expect(new Set(others.map(({ id }) => id))).toEqual(new Set([first.id]));
    await vi.waitFor(() => expect(failures).toEqual([noCapacity]));
    isFull = false;
    await occupy("ada", "shop");
    expect(hosts.size).toBe(1);
    clock.now += 2_000;
    await occupy("ada", "shop");
    await vi.waitFor(() => expect(hosts.size).toBe(2));
    expect((await occupy("ada", "shop")).id).not.toBe(first.id);
  });

  it("that start together take the instances of the one that fails", async () => {
    let starts = 0;
    const onStart = async () => {
      if (++starts === 2) throw new Error("no room");
    };
    const { occupy } = openHosts({ onStart });
    const places = await Promise.all(Array.from({ length: 8 }, () => occupy("ada", "shop")));
    expect([starts, slotsOf(places)]).toEqual([2, [8]]);
  });

  it("are started again for the instances that still wait when the one that began the start is cancelled", async () => {
    let starts = 0;
    const cancel = new AbortController();
    const onStart = async () => {
      if (++starts === 1) await new Promise((_, reject) => cancel.signal.addEventListener("abort", () => reject(new Error("cancelled"))));
    };
    const { hosts, occupy, kindOf } = openHosts({ onStart });
    const first = hosts.occupy("first", kindOf(specOf("ada", "shop")), cancel.signal);
    const others = [occupy("ada", "shop"), occupy("ada", "shop")];
    await vi.waitFor(() => expect(starts).toBe(1));
    cancel.abort();
    await expect(first).rejects.toThrow();
    expect([slotsOf(await Promise.all(others)), starts]).toEqual([[2], 2]);
  });

  it("that end before they have an instance are removed", async () => {
    const { hosts, engine, ids, occupy } = openHosts({ spreadAt: 1 });
    const first = await occupy("ada", "shop");
    await occupy("ada", "shop");
    await vi.waitFor(() => expect(hosts.size).toBe(2));
    const [empty] = (await engine.list()).filter(({ id }) => id !== first.id);
    const destroy = vi.spyOn(empty as Sandbox, "destroy");
    await engine.crash(empty?.id ?? "", "out of memory");
    await vi.waitFor(() => expect(destroy).toHaveBeenCalled());
    expect([await ids(), hosts.size]).toEqual([[first.id], 1]);
  });

  it.each<[string, Partial<BundleRequest>]>([
    ["other variables", { variables: { MODE: "slow" } }],
    ["another policy for outgoing connections", { egress: "open" }],
    ["another runtime", { runtime: "runsc" }],
    ["another template", { template: "gpu" }],
    ["other limits", { resources: { memoryMb: 512 } }],
  ])("of another server get no instances with %s", async (_, more) => {
    const { sandbox, group } = await openHosts().occupy("ada", "shop");
    const { hosts, occupy } = openHosts();
    hosts.adopt(group, sandbox);
    expect((await occupy("ada", "shop", more)).id).not.toBe(sandbox.id);
    expect((await occupy("ada", "shop")).id).toBe(sandbox.id);
  });

  it("never hold two owners or two bundles", async () => {
    const { occupy } = openHosts();
    const slots = await Promise.all([occupy("ada", "shop"), occupy("bob", "shop"), occupy("ada", "bank")]);
    expect(slotsOf(slots)).toEqual([1, 1, 1]);
    expect((await occupy("bob", "shop")).id).toBe(slots[1]?.id);
  });

  it("are closed when they have been empty for a while, unless another server has an instance there", async () => {
    const occupied = new Set<string>();
    const { hosts, clock, ids, occupy, release } = openHosts({ isOccupied: async (sandboxId) => occupied.has(sandboxId) });
    const sandbox = await occupy("ada", "shop");
    clock.now += 120_000;
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    release(sandbox);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    clock.now += 60_000;
    occupied.add(sandbox.id);
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandbox.id]);
    occupied.clear();
    clock.now += 60_000;
    await hosts.closeIdle(60_000);
    expect([await ids(), hosts.size]).toEqual([[], 0]);
  });

  it("that are empty are never more than the limit: those empty for longest are closed first", async () => {
    const { hosts, clock, ids, occupy, release } = openHosts({ maxEmpty: 1 });
    const names = ["shop", "bank", "farm"];
    const sandboxes: Occupied[] = [];
    for (const name of names) sandboxes.push(await occupy("ada", name));
    for (const slot of sandboxes.slice(0, 2)) {
      clock.now += 10;
      release(slot);
    }
    await hosts.closeIdle(60_000);
    expect(await ids()).toEqual([sandboxes[1]?.id, sandboxes[2]?.id].sort());
  });

  it("that have crashed are not used again, even if they crash while their occupancy is read", async () => {
    const { hosts, engine, clock, occupy, release } = openHosts({
      isOccupied: async (sandboxId) => {
        await engine.crash(sandboxId, "out of memory");
        throw new Error("the store is unavailable");
      },
    });
    const first = await occupy("ada", "shop");
    await engine.crash(first.id, "out of memory");
    await vi.waitFor(() => expect(hosts.size).toBe(0));
    const second = await occupy("ada", "shop");
    expect(second.id).not.toBe(first.id);
    release(second);
    clock.now += 60_000;
    await hosts.closeIdle(60_000);
    expect((await occupy("ada", "shop")).id).not.toBe(second.id);
  });
});
