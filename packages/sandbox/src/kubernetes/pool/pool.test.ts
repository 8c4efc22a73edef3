import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { expect, it } from "vitest";
import { openInitKey } from "../../init/key.ts";
import type { KubernetesObject } from "../api/client.ts";
import type { PodEvent } from "../events/event.ts";
import type { KubernetesEngineOptions } from "../options.ts";
import { defaultTemplates } from "../pod/default-templates.ts";
import { HOME_LABEL, ID_ANNOTATION } from "../pod/names.ts";
import { podOf } from "../pod/pod.ts";
import { stateOf } from "../pod/state.ts";
import type { Pod } from "../pod/types.ts";
import { PodTable } from "../pods.ts";
import { listQuotas } from "../quota.ts";
import { TIMEOUT_MS, useTestCluster } from "../testing/cluster.ts";
import { isWaiting, kindOf, type PodKind } from "./kind.ts";
import { PodPool } from "./pool.ts";

const { signal } = new AbortController();
const limits = { min: 1, max: 4, total: 8, idleMs: 3_600_000, roundMs: 500 };

describeNeeding("kubernetes", "waiting pods", () => {
  const cluster = useTestCluster();
  const { create, ends, folder } = cluster;
  const open = (home: string, options: Partial<KubernetesEngineOptions> = {}) => cluster.open({ home, pool: limits, ...options });

  async function waiting(): Promise<string[]> {
    return (await cluster.namespace.pods())
      .filter((pod) => isWaiting(pod) && pod.metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name);
  }

  const waitingCount = (count: number) => expect.poll(async () => (await waiting()).length, { timeout: 60_000 }).toBe(count);

  it("are each handed out once to two servers that claim twenty at once, of ten", { timeout: TIMEOUT_MS }, async () => {
    const { api, name: namespace } = cluster.namespace;
    // The pods are for no node, so that they cost nothing.
    const single = defaultTemplates.singleContainer as Pod;
    const template = { ...single, spec: { ...single.spec, nodeSelector: { "aenv.io/none": "true" } } };
    const inputOf = (id: string) => ({
      homeId: "claims",
      spec: { id, command: ["run"], variables: {}, labels: {}, startTimeoutMs: 1_000 },
      template,
      baseImage: cluster.image,
      state: { format: 1, port: null, hasInit: true, memoryMb: null, attempt: id, startsUntil: 0 } as const,
      initKey: "KEY",
      egress: "none" as const,
    });
    const kind = kindOf(inputOf("any")) as PodKind;
    for (let at = 0; at < 10; at++) await api.create(cluster.namespace.path("pods"), kind.waiting(`pool-${at}`));
    const servers = await Promise.all(
      ["a", "b"].map(async (name) => {
        const selector = `${HOME_LABEL}=claims`;
        const table = new PodTable(api, { namespace, selector, onChange: () => undefined, onGone: () => undefined });
        await table.listed();
        const pool = new PodPool(api, table, { namespace, limits, unschedulableMs: 3_600_000, isShared: true, roundMs: 3_600_000 });
        ends.push(async () => {
          await pool.close();
          await table.close();
        });
        return { name, pool };
      }),
    );
    const claims = servers.flatMap(({ name, pool }) =>
      Array.from({ length: 10 }, async (_, at) => {
        const id = `${name}-${at}`;
        const pod = await pool.claim(kind, podOf(inputOf(id)), signal);
        return pod === null ? null : { id, name: pod.metadata.name };
      }),
    );
    const claimed = (await Promise.all(claims)).filter((one) => one !== null);
    expect(claimed).toHaveLength(10);
    expect(new Set(claimed.map(({ name }) => name)).size).toBe(10);
    const stored = await cluster.namespace.pods();
    for (const { id, name } of claimed) {
      const pod = stored.find(({ metadata }) => metadata.name === name) as Pod;
      expect([pod.metadata.annotations?.[ID_ANNOTATION], stateOf(pod)?.attempt]).toEqual([id, id]);
    }
    expect(stored.filter(isWaiting)).toEqual([]);
    await Promise.all(stored.map(({ metadata }) => api.delete(cluster.namespace.path("pods", metadata.name), { graceSeconds: 0 })));
  });

  it("are shared by the servers of a group, given their program when they are claimed, and stay until nobody uses them", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const home = folder();
    openInitKey(home);
    const initKeyFile = join(home, "init-key.pem");
    const options = { group: "pool", initKeyFile };
    const first = open(home, options);
    const second = open(folder(), options);
    await create(first);
    await waitingCount(1);
    const [name] = await waiting();
    const claimed = await create(second, { variables: { GREETING: "hello" }, subject: { environment: "shop" } });
    expect(claimed.podName).toBe(name);
    const address = claimed.address as { host: string; port: number };
    const response = await fetch(`http://${address.host}:${address.port}/environment`);
    expect(await response.json()).toMatchObject({ variables: { GREETING: "hello" } });
    const pod = await cluster.namespace.api.get<Pod>(cluster.namespace.path("pods", claimed.podName));
    expect(pod.metadata.labels).toMatchObject({ "business/aenv-name": "shop" });
    await expect(create(first, { id: claimed.id })).rejects.toMatchObject({ code: "sandbox.exists" });
    await waitingCount(1);
    const seen = (await first.list()).find(({ id }) => id === claimed.id);
    await claimed.destroy();
    await seen?.exited;
    for (const sandbox of await first.list()) await sandbox.destroy();
    await second.close();
    expect(await waiting()).toHaveLength(1);
    // A server that finds nobody to use them, nor itself.
    open(folder(), { ...options, pool: { ...limits, idleMs: 1 } });
    await first.close();
    await waitingCount(0);
    // The server that saw it only is not surprised that it is gone.
    const { items } = await cluster.namespace.api.list<PodEvent>(cluster.namespace.path("events"), {
      fieldSelector: `involvedObject.name=${claimed.podName}`,
    });
    expect(items.map(({ reason }) => reason)).not.toContain("Ended");
  });

  /** A quota for the test, when the cluster counts it. */
  async function limitPods(pods: number, used: number): Promise<void> {
    const { namespace } = cluster;
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few" }, spec: { hard: { pods: String(pods) } } };
    await namespace.api.create<KubernetesObject>(namespace.path("resourcequotas"), quota);
    ends.push(() => namespace.api.delete(namespace.path("resourcequotas", "few")));
    const counted = async () => (await listQuotas(namespace.api, namespace.name))[0]?.used;
    await expect.poll(counted, { timeout: 30_000 }).toEqual({ pods: String(used) });
  }

  const noPods = () => expect.poll(() => cluster.namespace.pods(), { timeout: 60_000 }).toEqual([]);
  /** Pods that wait for commands: one whose program has ended does not count. */
  const none = { listening: { kind: "none" } as const, command: [] };

  it("make room for sandboxes when the quota is used up, and end with a server that is alone", { timeout: TIMEOUT_MS }, async () => {
    await noPods();
    // It reads no quota until long after the test.
    const engine = open(folder(), { pool: { ...limits, min: 2, roundMs: 3_600_000 } });
    const one = await create(engine, none);
    await waitingCount(2);
    await limitPods(3, 3);
    // A sandbox of another kind cannot use the waiting ones. One that nobody waits for has no right to their room.
    const other = { ...none, resources: { memoryMb: 200 } };
    await expect(create(engine, { ...other, isAhead: true })).rejects.toMatchObject({ code: "sandbox.no_capacity" });
    expect(await waiting()).toHaveLength(2);
    const two = await create(engine, other);
    expect(await waiting()).toHaveLength(1);
    for (const sandbox of [one, two]) await sandbox.destroy();
    await engine.close();
    expect(await waiting()).toEqual([]);
  });

  it("leave half of the room in a quota to sandboxes, before it is used up", { timeout: TIMEOUT_MS }, async () => {
    await noPods();
    await limitPods(4, 0);
    const engine = open(folder(), { pool: { ...limits, min: 3 } });
    await create(engine, none);
    await waitingCount(1);
    await create(engine, { ...none, resources: { memoryMb: 200 } });
    await create(engine, { ...none, resources: { memoryMb: 201 } });
    await waitingCount(0);
    const ahead = await create(engine, { ...none, resources: { memoryMb: 202 }, isAhead: true });
    await ahead.destroy();
  });
});
