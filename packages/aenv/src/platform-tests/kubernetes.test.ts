import { randomBytes } from "node:crypto";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath, loadClusterImage, temporaryTree, writeSmallRoot } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadBaseImage } from "../testing/base-image.ts";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describeNeeding("kubernetes", "a platform with the engine kubernetes, outside of the cluster", () => {
  let namespace: TestNamespace;
  let baseImage: string;

  beforeAll(async () => {
    [namespace, baseImage] = await Promise.all([openTestNamespace(), loadBaseImage()]);
  }, 180_000);

  afterAll(async () => {
    await namespace?.[Symbol.asyncDispose]();
  }, 60_000);

  function open(): Promise<Platform> {
    const flags = { engine: "kubernetes", kubeconfig: kubeconfigPath(), kubeNamespace: namespace.name, baseImage, startTimeout: "120s" };
    return startPlatform({ flags });
  }

  it("publishes an environment, calls its tool, scores it, and runs commands in its pod", async () => {
    const platform = await open();
    try {
      const ref = await publish(platform, projects.echo);
      const { id } = await platform.create(ref);
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
      expect(metrics).toMatch(/^aenv_kubernetes_requests_total\{verb="create"\} [1-9]/m);
      await platform.demand("DELETE", `/env-instance/${id}`);
    } finally {
      await platform.close();
    }
    await expectNoPods();
  }, 180_000);

  it("opens the second container of an instance as a pod of its own, from the image of its task", async () => {
    using tree = temporaryTree();
    const root = await writeSmallRoot(tree.path, "root.tar", { "task.txt": "task one\n" });
    const tag = randomBytes(6).toString("hex");
    await loadClusterImage(`aenv.local/tasks:${tag}`, () => root);
    const platform = await open();
    try {
      const deployConfig = { podTemplate: "DualContainer", isolation: "shared", imagePrefix: "aenv.local/tasks:" };
      const ref = await publish(platform, projects.repair, { deployConfig });
      const { id } = await platform.create(ref, { datasource: tag });
      const { text } = await callTool(urlOf(platform, id), "bash", { command: "cat /task.txt; id -u; echo $HOME" });
      expect(JSON.parse(text ?? "null")).toMatchObject({ exitCode: 0, stdout: "task one\n1000\n/home/app\n" });
      await platform.demand("DELETE", `/env-instance/${id}`);
      const images = (await namespace.pods()).flatMap(({ spec }) => spec.containers.map(({ image }) => image));
      expect(images).not.toContain(`aenv.local/tasks:${tag}`);
    } finally {
      await platform.close();
    }
    await expectNoPods();
  }, 180_000);

  /** A closed server leaves pods only for instances that live. */
  async function expectNoPods(): Promise<void> {
    await expect.poll(async () => (await namespace.pods()).map(({ metadata }) => metadata.name), { timeout: 60_000 }).toEqual([]);
  }
});
