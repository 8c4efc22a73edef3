import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { SandboxSpec } from "../../engine.ts";
import { TEST_PROGRAM } from "../../fixtures/test-root.ts";
import { openInitKey } from "../../init/key.ts";
import type { KubernetesObject } from "../api/client.ts";
import { KubernetesEngine } from "../engine.ts";
import type { KubernetesEngineOptions } from "../options.ts";
import { defaultTemplates } from "../pod/default-templates.ts";
import { HOME_LABEL, ID_ANNOTATION } from "../pod/names.ts";
import { podOf } from "../pod/pod.ts";
import { stateOf } from "../pod/state.ts";
import type { Pod } from "../pod/types.ts";
import { PodTable } from "../pods.ts";
import type { KubernetesSandbox } from "../sandbox.ts";
import { openTestNamespace, type TestNamespace } from "../testing/namespace.ts";
import { loadTestImage } from "../testing/test-image.ts";
import { isWaiting, kindOf, type PodKind } from "./kind.ts";
import { PodPool } from "./pool.ts";

const TIMEOUT_MS = 180_000;
const { signal } = new AbortController();
const limits = { min: 1, max: 4, total: 8, idleMs: 3_600_000, roundMs: 500 };

describeNeeding("kubernetes", "waiting pods", () => {
  const ends: (() => unknown)[] = [];
  let namespace: TestNamespace;
  let image: string;

  beforeAll(async () => {
    [namespace, image] = await Promise.all([openTestNamespace(), loadTestImage()]);
  }, TIMEOUT_MS);

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  }, TIMEOUT_MS);

  afterAll(async () => {
    await namespace?.[Symbol.asyncDispose]();
  }, TIMEOUT_MS);

  function open(home: string, options: Partial<KubernetesEngineOptions> = {}): KubernetesEngine {
    const { access, name } = namespace;
    const engine = new KubernetesEngine({ home, access, namespace: name, baseImage: image, pool: limits, ...options });
    ends.push(async () => {
      for (const sandbox of await engine.list()) await sandbox.destroy();
      await engine.close();
    });
    return engine;
  }

  function folder(): string {
    const tree = temporaryTree();
    ends.push(() => rmSync(tree.path, { recursive: true, force: true }));
    return tree.path;
  }

  async function create(engine: KubernetesEngine, more: Partial<SandboxSpec> = {}): Promise<KubernetesSandbox> {
    const command = ["/usr/bin/node", TEST_PROGRAM, "serve"];
    const id = `one-${randomBytes(6).toString("hex")}`;
    const spec = { id, command, variables: {}, labels: {}, startTimeoutMs: 120_000, ...more };
    return (await engine.create(spec, signal)) as KubernetesSandbox;
  }

  async function waiting(): Promise<string[]> {
    return (await namespace.pods())
      .filter((pod) => isWaiting(pod) && pod.metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name);
  }

  const waitingCount = (count: number) => expect.poll(async () => (await waiting()).length, { timeout: 60_000 }).toBe(count);

  it("are each handed out once to two servers that claim twenty at once, of ten", { timeout: TIMEOUT_MS }, async () => {
    const { api } = namespace;
    // For no node, so that they cost nothing.
    const single = defaultTemplates.singleContainer as Pod;
    const template = { ...single, spec: { ...single.spec, nodeSelector: { "aenv.io/none": "true" } } };
    const inputOf = (id: string) => ({
      homeId: "claims",
      spec: { id, command: ["run"], variables: {}, labels: {}, startTimeoutMs: 1_000 },
      template,
      baseImage: image,
      state: { format: 1, port: null, hasInit: true, memoryMb: null, attempt: id, startsUntil: 0 } as const,
      initKey: "KEY",
      egress: "none" as const,
    });
    const kind = kindOf(inputOf("any")) as PodKind;
    for (let at = 0; at < 10; at++) await api.create(namespace.path("pods"), kind.waiting(`pool-${at}`));
    const servers = await Promise.all(
      ["a", "b"].map(async (name) => {
        const selector = `${HOME_LABEL}=claims`;
        const table = new PodTable(api, { namespace: namespace.name, selector, onChange: () => undefined, onGone: () => undefined });
        await table.listed();
        const pool = new PodPool(api, table, { limits, unschedulableMs: 3_600_000, isShared: true, roundMs: 3_600_000 });
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
    const stored = await namespace.pods();
    for (const { id, name } of claimed) {
      const pod = stored.find(({ metadata }) => metadata.name === name) as Pod;
      expect([pod.metadata.annotations?.[ID_ANNOTATION], stateOf(pod)?.attempt]).toEqual([id, id]);
    }
    expect(stored.filter(isWaiting)).toEqual([]);
    await Promise.all(stored.map(({ metadata }) => api.delete(namespace.path("pods", metadata.name), { graceSeconds: 0 })));
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
    const pod = await namespace.api.get<Pod>(namespace.path("pods", claimed.podName));
    expect(pod.metadata.labels).toMatchObject({ "business/aenv-name": "shop" });
    await expect(create(first, { id: claimed.id })).rejects.toMatchObject({ code: "sandbox.exists" });
    await waitingCount(1);
    for (const sandbox of await first.list()) await sandbox.destroy();
    await second.close();
    expect(await waiting()).toHaveLength(1);
    // A server that finds nobody to use them, nor itself.
    open(folder(), { ...options, pool: { ...limits, idleMs: 1 } });
    await first.close();
    await waitingCount(0);
  });

  it("make room for sandboxes when the quota is used up, and end with a server that is alone", { timeout: TIMEOUT_MS }, async () => {
    await expect.poll(() => namespace.pods(), { timeout: 60_000 }).toEqual([]);
    const engine = open(folder(), { pool: { ...limits, min: 2 } });
    const hard = { pods: "3" };
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "three" }, spec: { hard } };
    await namespace.api.create<KubernetesObject>(namespace.path("resourcequotas"), quota);
    ends.push(() => namespace.api.delete(namespace.path("resourcequotas", "three")));
    await expect
      .poll(async () => {
        const { status } = await namespace.api.get<KubernetesObject & { status?: { hard?: object } }>(
          namespace.path("resourcequotas", "three"),
        );
        return status?.hard;
      })
      .toEqual(hard);
    const none = { listening: { kind: "none" } as const };
    const one = await create(engine, none);
    await waitingCount(2);
    // Of another kind, so that the waiting ones are of no use to it. One that nobody waits for has no right to their room.
    const other = { ...none, memoryMb: 200 };
    await expect(create(engine, { ...other, isAhead: true })).rejects.toMatchObject({ code: "sandbox.no_capacity" });
    expect(await waiting()).toHaveLength(2);
    const two = await create(engine, other);
    expect(await waiting()).toHaveLength(1);
    for (const sandbox of [one, two]) await sandbox.destroy();
    await engine.close();
    expect(await waiting()).toEqual([]);
  });
});
