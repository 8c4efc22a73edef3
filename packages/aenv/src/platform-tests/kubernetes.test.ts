import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadBaseImage } from "./base-image.ts";
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
      await platform.demand("DELETE", `/env-instance/${id}`);
    } finally {
      await platform.close();
    }
    for (const { metadata } of await namespace.pods()) expect(metadata.annotations?.["aenv.io/ready"], metadata.name).toBeDefined();
  }, 180_000);
});
