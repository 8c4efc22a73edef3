import { renameSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import type { Sandbox } from "../engine/engine.ts";
import { connectInit } from "../init/connection.ts";
import type { KubernetesObject } from "./api/client.ts";
import type { KubernetesEngine } from "./engine.ts";
import { defaultTemplates } from "./pod/default-templates.ts";
import type { PodTemplates } from "./pod/templates.ts";
import type { Pod } from "./pod/types.ts";
import type { KubernetesSandbox } from "./sandbox.ts";
import { BreakableProxy } from "./testing/breakable-proxy.ts";
import { START_MS, TIMEOUT_MS, useTestCluster } from "./testing/cluster.ts";
import { loadTestImage } from "./testing/test-image.ts";

const { signal } = new AbortController();
/** Loaded into the test cluster by its script; it has a shell, and no init. */
const OTHER_IMAGE = "aenv.local/busybox:1";
const PORT = 8090;

describeNeeding("kubernetes", "a pod", () => {
  const cluster = useTestCluster();
  const { open, create: make } = cluster;

  async function run(engine: KubernetesEngine, sandbox: Sandbox, script: string): Promise<string> {
    await using init = await connectInit(sandbox.commands?.address as never, engine.commands.key, signal);
    const { stdout, stderr } = await init.run({ argv: ["/bin/sh", "-c", script], env: sandbox.commands?.defaults?.env ?? {} });
    return `${stdout}${stderr}`.trim();
  }

  /** Nothing is left of a start that failed. */
  async function expectNoPods(): Promise<void> {
    await expect.poll(async () => (await cluster.namespace.pods()).map(({ metadata }) => metadata.name), { timeout: 30_000 }).toEqual([]);
  }

  it("gets the init from the base image if its own lacks it, keeps variables out of the cluster, and takes folders by content", {
    timeout: TIMEOUT_MS,
  }, async () => {
    using folder = temporaryTree({ "main.txt": "content", "deep/file.txt": "more" });
    using same = temporaryTree({ "main.txt": "content", "deep/file.txt": "more" });
    const engine = open();
    const sandbox = await make(engine, {
      image: OTHER_IMAGE,
      command: ["/bin/sh", "-c", "echo started $TOKEN; sleep 600"],
      listening: { kind: "none" },
      variables: { TOKEN: "s3cret-value" },
      labels: { server: "s1" },
      subject: { environment: "shop", version: "1.0.0", owner: "ada@example.com", labels: { team: "blue" } },
    });
    await expect.poll(() => sandbox.tail(1), { timeout: 10_000 }).toEqual(["started s3cret-value"]);
    const pod = await cluster.namespace.api.get<Pod>(cluster.namespace.path("pods", sandbox.podName));
    expect(JSON.stringify(pod)).not.toContain("s3cret-value");
    expect(pod.metadata.labels).toMatchObject({ "business/aenv-name": "shop", "business/aenv-version": "1.0.0" });
    expect(pod.metadata.annotations).toMatchObject({ "business/aenv-owner": "ada@example.com" });
    expect(pod.metadata.name).toMatch(/^shop-[a-z0-9]{6}$/);
    await sandbox.shared.describe({ environment: "shop", owner: "ada@example.com" });
    expect(engine.apiCounters.calls.patch).toBe(1);
    await sandbox.shared.describe({ instance: "shop-1", owner: "grace", labels: { team: "red" } });
    const described = await cluster.namespace.api.get<Pod>(cluster.namespace.path("pods", sandbox.podName));
    const messages = async () => {
      const fieldSelector = `involvedObject.name=${sandbox.podName},source=aenv`;
      const { items } = await cluster.namespace.api.list<KubernetesObject & { message: string }>(cluster.namespace.path("events"), {
        fieldSelector,
      });
      return items.map(({ message }) => message);
    };
    const created = `Created for sandbox ${sandbox.id} for environment shop@1.0.0 (owner ada@example.com)`;
    const used = "Started ahead, and is used now for instance shop-1 (owner grace)";
    await expect.poll(async () => (await messages()).sort(), { timeout: 20_000 }).toEqual([created, used]);
    expect(described.metadata.labels).toMatchObject({
      "aenv.io/instance": "shop-1",
      "aenv.io/label-team": "red",
      "business/aenv-owner": "grace",
    });
    const path = await sandbox.addFolder(folder.path, signal);
    expect(await run(engine, sandbox, `cat ${path}/main.txt ${path}/deep/file.txt; id -u`)).toBe("contentmore1000");
    expect(await sandbox.addFolder(same.path, signal)).toBe(path);
    // The program that serves a pod is not writable in it.
    expect(await run(engine, sandbox, "touch /.aenv/init 2>/dev/null || echo refused")).toBe("refused");
    await sandbox.destroy();
    await expectNoPods();
  });

  it("gets its first folder while it starts, or when it is added if that was not possible", { timeout: TIMEOUT_MS }, async () => {
    using here = temporaryTree({ "first/main.txt": "content" });
    const [first, later] = [join(here.path, "first"), join(here.path, "later")];
    const engine = open();
    const startWith = (firstFolder: string) => make(engine, { firstFolder, listening: { kind: "none" }, command: [] });
    const [early, late] = await Promise.all([startWith(first), startWith(later)]);
    const sent = "cat /tmp/aenv-bundles/content-*/main.txt 2>/dev/null || echo none";
    await expect.poll(() => run(engine, early, sent), { timeout: 10_000 }).toBe("content");
    renameSync(first, later);
    const path = await early.addFolder(first, signal);
    expect(await run(engine, early, `cat ${path}/main.txt`)).toBe("content");
    expect(await run(engine, late, sent)).toBe("none");
    expect(await late.addFolder(later, signal)).toBe(path);
    expect(await run(engine, late, `cat ${path}/main.txt`)).toBe("content");
  });

  it("keeps folders in a volume of its template for others, and uses none that somebody has changed", { timeout: TIMEOUT_MS }, async () => {
    using folder = temporaryTree({ "main.txt": "content" });
    const cached = (pod: Pod): Pod => {
      const mounted = withMain(pod, { volumeMounts: [{ name: "kept", mountPath: "/aenv/bundle-cache" }] });
      return { ...mounted, spec: { ...mounted.spec, volumes: [{ name: "kept", emptyDir: {} }] } };
    };
    const engine = open({ templates: templatesOf({ cached }) });
    const sandbox = await make(engine, { template: "cached", listening: { kind: "none" }, command: [] });
    const path = await sandbox.addFolder(folder.path, signal);
    const use = async (change: string) => {
      await run(engine, sandbox, `cd /aenv/bundle-cache && ${change}; rm -r ${path}`);
      await sandbox.addFolder(folder.path, signal);
      return run(engine, sandbox, `cat ${path}/main.txt; grep -ac content /aenv/bundle-cache/*.tar`);
    };
    expect(await use("true")).toBe("content1");
    expect(await use("for file in *.tar; do echo changed > $file; done")).toBe("content1");
  });

  it("runs the image's own program without an init, with its variables", { timeout: TIMEOUT_MS }, async () => {
    const serverImage = await loadTestImage(PORT);
    const engine = open();
    const listening = { kind: "port", port: PORT, healthPath: "/health" } as const;
    const sandbox = await make(engine, { image: serverImage, command: [], listening, variables: { GREETING: "hello" } });
    expect(sandbox.commands?.address).toBeUndefined();
    expect(await textAt(sandbox, "/environment")).toContain('"GREETING":"hello"');
    await expect(sandbox.addFolder("/tmp", signal)).rejects.toMatchObject({ code: "sandbox.unsupported" });
    await expect(sandbox.ports.connect(PORT + 1, signal)).rejects.toMatchObject({ code: "sandbox.port_closed" });
    await sandbox.destroy();
    await expectNoPods();
  });

  it("that cannot start says why within seconds, and is removed", { timeout: TIMEOUT_MS }, async () => {
    const templates = templatesOf({
      never: (pod) => withMain(pod, { imagePullPolicy: "Never" }),
      nowhere: (pod) => ({ ...pod, spec: { ...pod.spec, nodeSelector: { "aenv.io/none": "true" } } }),
      privileged: (pod) => withMain(pod, { securityContext: { privileged: true, allowPrivilegeEscalation: true } }),
    });
    const patient = open({ templates });
    const impatient = open({ templates, unschedulableMs: 1_000 });
    const failures = [
      [
        { image: "aenv.local/none:1" },
        "sandbox.start_failed",
        /'aenv\.local\/none:1' cannot be pulled \((?:ErrImagePull|ImagePullBackOff)\)/,
      ],
      [{ image: "aenv.local/none:1", template: "never" }, "sandbox.start_failed", /is not on the node.*ErrImageNeverPull/],
      [{ template: "nowhere" }, "sandbox.no_capacity", /no node of the cluster has room.*selector/],
      [{ template: "privileged" }, "sandbox.start_failed", /does not admit the pod.*privileged/],
      [{ template: "unknown" }, "request.invalid", /no pod template 'unknown'/],
      [{ command: ["/nowhere/program"] }, "sandbox.start_failed", /cannot run '\/nowhere\/program': no such program/],
    ] as const;
    const begun = Date.now();
    const engineOf = ([, code]: (typeof failures)[number]) => (code === "sandbox.no_capacity" ? impatient : patient);
    const found = await Promise.allSettled(failures.map((one) => make(engineOf(one), { listening: { kind: "none" }, ...one[0] })));
    for (const [index, [, code, message]] of failures.entries()) {
      const { reason } = found[index] as PromiseRejectedResult;
      expect(reason).toMatchObject({ code, message: expect.stringMatching(message) });
    }
    expect(Date.now() - begun).toBeLessThan(START_MS / 2);
    await expectNoPods();
  });

  it("that is not wanted any more says what it waited for, and is removed", { timeout: TIMEOUT_MS }, async () => {
    const nowhere = (pod: Pod): Pod => ({ ...pod, spec: { ...pod.spec, nodeSelector: { "aenv.io/none": "true" } } });
    const engine = open({ templates: templatesOf({ nowhere }), unschedulableMs: START_MS });
    const stop = new AbortController();
    const spec = { id: "unwanted", command: [], variables: {}, labels: {}, startTimeoutMs: START_MS, listening: { kind: "none" } } as const;
    const starting = engine.create({ ...spec, template: "nowhere" }, stop.signal);
    const isSeen = async () => JSON.stringify((await cluster.namespace.pods()).map(({ status }) => status));
    await expect.poll(isSeen, { timeout: 30_000 }).toContain("Unschedulable");
    await expect.poll(() => engine.podsByPhase.Pending, { timeout: 30_000 }).toBe(1);
    stop.abort();
    const details = { waitedFor: expect.stringMatching(/the pod was not started/) };
    await expect(starting).rejects.toMatchObject({ code: "request.cancelled", details });
    await expectNoPods();
  });

  it("beyond the quota of the namespace is refused for now", { timeout: TIMEOUT_MS }, async () => {
    const engine = open();
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few" }, spec: { hard: { pods: "0" } } };
    await cluster.namespace.api.create<KubernetesObject>(cluster.namespace.path("resourcequotas"), quota);
    try {
      await expect(make(engine)).rejects.toMatchObject({ code: "sandbox.no_capacity", message: expect.stringMatching(/quota.*few/) });
      await expectNoPods();
    } finally {
      await cluster.namespace.api.delete(cluster.namespace.path("resourcequotas", "few"));
    }
  });

  it("ends with the reason: out of memory, deleted, evicted", { timeout: TIMEOUT_MS }, async () => {
    const engine = open();
    const [hungry, deleted, evicted] = await Promise.all([make(engine, { resources: { memoryMb: 128 } }), make(engine), make(engine)]);
    await textAt(hungry, "/allocate?mb=300", "POST").catch(() => undefined);
    await cluster.namespace.api.delete(cluster.namespace.path("pods", deleted.podName), { graceSeconds: 1 });
    const eviction = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: evicted.podName },
      deleteOptions: { gracePeriodSeconds: 1 },
    };
    await cluster.namespace.api.create<KubernetesObject>(`${cluster.namespace.path("pods", evicted.podName)}/eviction`, eviction);
    expect((await hungry.exited).reason).toMatch(/memory.*its limit is 128 MB/);
    expect((await deleted.exited).reason).toBe("the pod was deleted by another client of the cluster");
    expect((await evicted.exited).reason).toMatch(/EvictionByEvictionAPI/);
    expect(await engine.list()).toEqual([]);
    for (const sandbox of [hungry, deleted, evicted]) await sandbox.destroy();
    await expectNoPods();
  });

  it("is followed again after the API server was away, and after a watch that got stuck", { timeout: TIMEOUT_MS }, async () => {
    await using proxy = await BreakableProxy.open(new URL(cluster.namespace.access.server));
    const access = { ...cluster.namespace.access, server: `https://127.0.0.1:${proxy.port}` };
    const engine = open({ access, watch: { watchSeconds: 5 } });
    const sandboxes = await Promise.all([make(engine), make(engine), make(engine)]);
    const [first, second, third] = sandboxes as [KubernetesSandbox, KubernetesSandbox, KubernetesSandbox];
    proxy.cut();
    await cluster.namespace.api.delete(cluster.namespace.path("pods", first.podName), { graceSeconds: 0 });
    const destroying = second.destroy();
    proxy.restore();
    expect((await first.exited).reason).toMatch(/deleted by another client/);
    await destroying;
    proxy.stick();
    await cluster.namespace.api.delete(cluster.namespace.path("pods", third.podName), { graceSeconds: 0 });
    proxy.restore();
    expect((await third.exited).reason).toMatch(/deleted by another client/);
    expect(await engine.list()).toEqual([]);
    const next = await make(engine);
    await next.destroy();
    await expectNoPods();
    const { create = 0, patch = 0, delete: deleted = 0 } = engine.apiCounters.calls;
    // Four sandboxes with three writes each, the network policy, two that others deleted, the events of these, and what was sent again.
    expect(create + patch + deleted).toBeLessThanOrEqual(27);
  });

  it("that a server has left unfinished is removed by another one, when its time is over", { timeout: TIMEOUT_MS }, async () => {
    /** As a server leaves it that is killed before the program answers. */
    const leave = async (group: string) => {
      const { state, podName } = await make(open({ group }), { listening: { kind: "none" } });
      const past = { ...state, startsUntil: Date.now() - 3_600_000 };
      const annotations = { "aenv.io/ready": null, "aenv.io/state": JSON.stringify(past) };
      await cluster.namespace.api.patch(cluster.namespace.path("pods", podName), { metadata: { annotations } });
    };
    const other = open({ group: "swept", sweepEveryMs: 500 });
    await other.list();
    await Promise.all([leave("swept"), leave("listed")]);
    const next = open({ group: "listed" });
    await expect.poll(() => next.list(), { timeout: 30_000 }).toEqual([]);
    await expectNoPods();
  });
});

/** The platform's template, changed. */
function templatesOf(changes: Readonly<Record<string, (pod: Pod) => Pod>>): PodTemplates {
  const single = defaultTemplates.singleContainer as Pod;
  return {
    names: ["singleContainer", ...Object.keys(changes)],
    warnings: [],
    ownersOf: () => ["*"],
    get: (name) => {
      if (name === "singleContainer") return single;
      const change = changes[name];
      if (change === undefined) throw new PlatformError("request.invalid", `there is no pod template '${name}'`);
      return change(single);
    },
  };
}

function withMain(pod: Pod, more: object): Pod {
  return { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.map((container) => ({ ...container, ...more })) } };
}

function textAt({ address }: Sandbox, path: string, method = "GET"): Promise<string> {
  const { host, port } = address as Extract<Sandbox["address"], { kind: "tcp" }>;
  return new Promise((resolve, reject) => {
    const sent = get({ host, port, path, method, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", reject).on("end", () => resolve(text));
    });
    sent.on("error", reject).end();
  });
}
