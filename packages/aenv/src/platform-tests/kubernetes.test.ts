import { randomBytes } from "node:crypto";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath, loadClusterImage, temporaryTree, writeSmallRoot } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadBaseImage } from "../testing/base-image.ts";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import type { TestPod } from "./testing/faulty-cluster.ts";

describeNeeding("kubernetes", "a platform with the engine kubernetes, outside of the cluster", () => {
  let namespace: TestNamespace;
  let baseImage: string;

  beforeAll(async () => {
    [namespace, baseImage] = await Promise.all([openTestNamespace(), loadBaseImage()]);
  }, 180_000);

  afterAll(async () => {
    await namespace?.[Symbol.asyncDispose]();
  }, 60_000);

  function open(more: Readonly<Record<string, unknown>> = {}): Promise<Platform> {
    // Outside of the home: the node may run on this machine, and ends the processes of a deleted pod later.
    const dataDir = "/var/lib/aenv";
    const cluster = { kubeconfig: kubeconfigPath(), kubeNamespace: namespace.name, baseImage };
    const flags = { engine: "kubernetes", ...cluster, startTimeout: "120s", dataDir, ...more };
    return startPlatform({ flags });
  }

  it("publishes an environment, calls its tool, scores it, and runs commands in its pod", async () => {
    const platform = await open();
    try {
      const ref = await publish(platform, projects.echo, { deployConfig: { cpu: "1C", memory: "700Mi", ephemeralStorage: "1Gi" } });
      const { id } = await platform.create(ref);
      const limits = (await namespace.pods()).map(({ spec }) => spec.containers[0]?.resources?.limits);
      expect(limits).toContainEqual({ cpu: "1", memory: "700Mi", "ephemeral-storage": "1Gi" });
      expect(await callTool(urlOf(platform, id), "echo", { text: "hello" })).toMatchObject({ status: 200, isError: false });
      const headers = { "content-type": "application/json" };
      const scored = await fetch(urlOf(platform, id, "/task/reward"), { method: "POST", body: "{}", headers });
      expect(await scored.json()).toMatchObject({ data: { reward: 1 } });
      const script = "console.log(fs.existsSync(process.argv[1]), process.getuid(), process.env.POD_NAMESPACE)";
      const command = ["node", "-e", script, platform.home];
      const ran = await platform.demand("POST", `/env-instance/${id}/exec`, { command, wait: true });
      expect(ran).toMatchObject({ stdout: `false 1000 ${namespace.name}\n` });
      const metrics = await (await fetch(`${platform.controlUrl}/metrics`)).text();
      expect(metrics).toMatch(/^aenv_pods\{phase="Running"\} [1-9]/m);
      expect(metrics).toMatch(/^aenv_pod_ready_duration_ms_count [1-9]/m);
      expect(metrics).toMatch(/^aenv_pods_waiting \d/m);
      expect(metrics).toMatch(/^aenv_pod_claims_total\{result="created"\} [1-9]/m);
      expect(metrics).toMatch(/^aenv_kubernetes_requests_total\{verb="create"\} [1-9]/m);
      await platform.demand("DELETE", `/env-instance/${id}`);
    } finally {
      await platform.close();
    }
    await expectNoPods();
  }, 180_000);

  it("has the second container of an instance in its pod, with the image of its task and a folder that both share", async () => {
    using tree = temporaryTree();
    const root = await writeSmallRoot(tree.path, "root.tar", { "task.txt": "task one\n" });
    const tag = randomBytes(6).toString("hex");
    const image = `aenv.local/tasks:${tag}`;
    await loadClusterImage(image, () => root);
    const platform = await open();
    const inSecond = async (id: string, command: string) => {
      const { text } = await callTool(urlOf(platform, id), "bash", { command });
      return JSON.parse(text ?? "null") as { exitCode: number; stdout: string };
    };
    try {
      const deployConfig = { podTemplate: "DualContainer", isolation: "instance", imagePrefix: "aenv.local/tasks:" };
      const ref = await publish(platform, projects.repair, { deployConfig });
      const { id } = await platform.create(ref, { datasource: tag });
      const script = "fs.writeFileSync('/shared/note', 'from main')";
      await platform.demand("POST", `/env-instance/${id}.main/exec`, { command: ["node", "-e", script], wait: true });
      const seen = await inSecond(id, "cat /task.txt; id -u; cat /shared/note");
      expect(seen).toMatchObject({ exitCode: 0, stdout: "task one\n1000\nfrom main" });
      const ofInstance = async () => (await namespace.pods()).filter(({ metadata }) => metadata.labels?.["aenv.io/instance"] === id);
      const [pod] = await ofInstance();
      expect(pod?.spec.containers.map((container) => container.image)).toEqual([baseImage, image]);
      // A container cannot have the files of its image again, so it would be another pod without the folder.
      const refused = await platform.ask("POST", `/env-instance/${id}/reset`, {});
      expect(refused).toMatchObject({ success: false, message: expect.stringContaining("create a new instance for each episode") });
      expect(await inSecond(id, "cat /shared/note; rm /shared/note")).toMatchObject({ stdout: "from main" });
      await platform.demand("POST", `/env-instance/${id}/reset`, {});
      expect(await inSecond(id, "cat /task.txt; ls /shared")).toMatchObject({ stdout: "task one\n" });
      expect(await ofInstance()).toHaveLength(2);
      await platform.demand("DELETE", `/env-instance/${id}`);
      expect(await ofInstance()).toEqual([]);
    } finally {
      await platform.close();
    }
    await expectNoPods();
  }, 180_000);

  it("runs 200 packed instances in a few pods, each with a state of its own, and removes the pods when they have ended", async () => {
    const platform = await open();
    try {
      const ref = await publish(platform, projects.probe, { isolation: "shared" });
      const created = await Promise.all(Array.from({ length: 200 }, () => platform.create(ref)));
      const ids = created.map(({ id }) => id);
      expect(new Set(ids).size).toBe(200);
      const last = async (id: string, calls: number) => {
        let text: string | null = null;
        for (let at = 0; at < calls; at++) text = (await callTool(urlOf(platform, id), "count", {})).text;
        return text;
      };
      const counts = await Promise.all(ids.map((id, at) => last(id, 1 + (at % 3))));
      expect(counts).toEqual(ids.map((_, at) => String(1 + (at % 3))));
      // Pods that are ready for the next instance have no owner yet.
      const isUsed = ({ metadata }: TestPod) => metadata.labels?.["business/aenv-owner"] !== undefined;
      // A pod has 64 instances.
      await expect.poll(async () => (await namespace.pods()).filter(isUsed).length, { timeout: 30_000 }).toBe(4);
      await Promise.all(ids.map((id) => platform.demand("DELETE", `/env-instance/${id}`)));
    } finally {
      await platform.close();
    }
    await expectNoPods();
  }, 240_000);

  it("runs packed instances in the pod that there is, if the quota has no capacity for another", async () => {
    const platform = await open({ poolMin: 0, poolMax: 0, sandboxesReady: 0 });
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "one" }, spec: { hard: { pods: "1" } } };
    try {
      const ref = await publish(platform, projects.probe, { isolation: "shared" });
      // The pod in which it was verified.
      await expectNoPods();
      await namespace.api.create<{ readonly metadata: { readonly name: string } }>(namespace.path("resourcequotas"), quota);
      const created = await Promise.all(Array.from({ length: 140 }, () => platform.create(ref)));
      const counts = await Promise.all(created.map(async ({ id }) => (await callTool(urlOf(platform, id), "count", {})).text));
      expect(counts).toEqual(created.map(() => "1"));
      expect(await namespace.pods()).toHaveLength(1);
      await Promise.all(created.map(({ id }) => platform.demand("DELETE", `/env-instance/${id}`)));
    } finally {
      await namespace.api.delete(namespace.path("resourcequotas", quota.metadata.name));
      await platform.close();
    }
    await expectNoPods();
  }, 240_000);

  /** A closed server leaves pods only for instances that live. */
  async function expectNoPods(): Promise<void> {
    await expect.poll(async () => (await namespace.pods()).map(({ metadata }) => metadata.name), { timeout: 60_000 }).toEqual([]);
  }
});
