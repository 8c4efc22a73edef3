import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Architecture, initProgram, openBaseRoot } from "@aenv/sandbox";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath, loadClusterImage, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runnerCode } from "../server/runner.ts";
import { cacheFolder } from "./bundles.ts";
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

/** The base image of sandboxes, made of files of this machine. */
async function loadBaseImage(): Promise<string> {
  const base = await openBaseRoot({ folder: join(cacheFolder, "base-root"), runner: await runnerCode() });
  using tree = temporaryTree();
  const tar = spawn("tar", ["--extract", "--directory", tree.path], { stdio: ["pipe", "ignore", "inherit"] });
  const done = once(tar, "exit");
  await pipeline(base.archive(), tar.stdin);
  await done;
  const init = await initProgram(process.arch as Architecture);
  copyFileSync(init, join(tree.path, "opt/aenv/init"));
  const name = `aenv.local/base-root:${base.digest.slice(-12)}`;
  await loadClusterImage(name, tree.path);
  return name;
}
