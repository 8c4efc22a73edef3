import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { InstanceRecord } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import type { Tree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";
import { run, runJson } from "../testing/command.ts";

// The steps of a user, from an empty folder to a published environment: each step needs those before it.
describe("from a new project to running instances", { timeout: 60_000 }, () => {
  let platform: Platform;
  let tree: Tree;
  let project: string;
  let instance: InstanceRecord;

  // The steps run in separate processes; checks between them run in this process.
  const options = () => ({ cwd: project, env: { HOME: tree.path, AENV_SYSTEM_URL: platform.controlUrl } });
  const step = (...argv: string[]) => run(argv, options());
  const json = (...argv: string[]) => runJson([...argv, "--json"], options());
  const look = async (...argv: string[]) => JSON.parse((await aenv([...argv, "--json"], options())).stdout);

  beforeAll(async () => {
    platform = await startPlatform();
    tree = installedTree();
    project = join(tree.path, "shop");
  });
  afterAll(async () => {
    tree?.[Symbol.dispose]();
    await platform?.close();
  });

  it("creates a project", async () => {
    expect((await run(["init", "shop", "--template", "stateful"], { cwd: tree.path })).code).toBe(0);
    expect(existsSync(join(project, "config.json"))).toBe(true);
  });

  it("prints what a push would do, without doing it", async () => {
    const { code, stdout } = await step("push", "--dry-run");
    expect([code, stdout]).toEqual([0, expect.stringContaining("Would publish shop@1.0.0")]);
    expect(await look("push", "--dry-run")).toMatchObject({ dryRun: true, wouldPublish: true, wouldUpload: true });
    expect(await look("list")).toEqual([]);
    expect((await step("list")).stdout).toMatch(/Publish one with: aenv push\n.* come with AEnv .*mini-terminal/);
  });

  it("publishes it", async () => {
    const { code, stdout, stderr } = await step("push");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`shop@1.0.0 is published at ${platform.controlUrl}`);
    expect(stdout).toContain("aenv instance create shop@1.0.0");
  });

  it("treats a push of identical content as a no-op", async () => {
    const { code, stdout } = await step("push");
    expect([code, stdout]).toEqual([0, expect.stringContaining("is already published")]);
    expect(await json("push")).toMatchObject({ published: false, name: "shop", version: "1.0.0" });
    expect(await look("push", "--dry-run")).toMatchObject({ wouldPublish: false, wouldUpload: false });
  });

  it("refuses different content under the same version, and accepts it under a new one", async () => {
    const file = join(project, "README.md");
    const source = join(project, "src/index.ts");
    const before = readFileSync(source, "utf8");
    writeFileSync(source, `${before}\nconsole.log("more");\n`);
    writeFileSync(file, "not part of it");
    const { code, stderr } = await step("push");
    expect(code).toBe(1);
    expect(stderr).toContain("shop@1.0.0 is already published with different content");
    expect(stderr).toContain("--version 1.0.1");
    expect((await look("push", "--dry-run")).error.code).toBe("environment.exists");
    expect(await json("push", "--version", "1.0.1", "--no-verify", "--visibility", "public")).toMatchObject({ published: true });
    writeFileSync(source, before);
  });

  it("lists and shows published environments", async () => {
    const listed = (await look("list", "--name", "shop")) as { version: string; visibility: string }[];
    expect(listed.map(({ version, visibility }) => [version, visibility])).toEqual([
      ["1.0.1", "public"],
      ["1.0.0", "private"],
    ]);
    expect((await step("list", "--limit", "1")).stdout).toContain("--offset 1");
    expect((await look("list", "--tag", "nothing-has-this")) as unknown[]).toEqual([]);
    expect(JSON.parse((await step("get", "shop@1.0.0", "-f", "json")).stdout)).toMatchObject({ name: "shop", version: "1.0.0" });
    expect(await look("get", "shop")).toMatchObject({ version: "1.0.1" });
    const { stdout } = await step("get", "shop", "-v", "1.0.0");
    expect(stdout).toMatch(/Environment +shop@1\.0\.0/);
    expect(stdout).toMatch(/│ tool /);
    expect((await step("env", "versions", "shop")).stdout).toContain("published by default");
  });

  it("publishes an environment whose tasks need missing data, with a warning", async () => {
    await run(["init", "later", "--template", "stateful"], { cwd: tree.path });
    const source =
      'import { defineEnvironment } from "aenvironment";\nexport default defineEnvironment({ tasks: () => { throw new Error("no data yet"); } });\n';
    writeFileSync(join(tree.path, "later/src/index.ts"), source);
    const { code, stderr } = await step("push", "--work-dir", join(tree.path, "later"));
    expect(code).toBe(0);
    expect(stderr).toContain("Its tasks could not be listed on the server: no data yet");
  });

  it("starts an instance that keeps running", async () => {
    const argv = ["--ttl", "5m", "--seed", "7", "--label", "run=a", "--env", "MOOD=calm"];
    instance = (await json("instance", "create", "shop@1.0.0", "--keep-alive", ...argv)) as InstanceRecord;
    expect(instance).toMatchObject({ status: "Running", environment: "shop@1.0.0", seed: 7, ttl: "5m", labels: { run: "a" } });
    expect(await look("instance", "list", "--label", "run=a")).toMatchObject([{ id: instance.id }]);
    expect(await look("instances", "--name", "shop", "--version", "1.0.0")).toMatchObject([{ id: instance.id }]);
    expect(await look("instance", "list", "--label", "run=b")).toEqual([]);
  });

  it("can be used from the SDK and the shell, and with an agent link only through the agent API", async () => {
    const url = `${platform.dataUrl}/env-instance/${instance.id}`;
    await Environment.use("shop", { instanceUrl: url }, async (env) => {
      expect((await env.listTools()).length).toBeGreaterThan(0);
    });
    expect((await aenv(["call", "--list", "--url", url])).stdout).toMatch(/tool/);
    const byId = ["call", "--list", "--instance", instance.id, "--system-url", platform.controlUrl];
    expect((await aenv(byId, { env: { DUMMY_INSTANCE_IP: "http://127.0.0.1:9" } })).stdout).toMatch(/tool/);
    const agentUrl = String(instance.agent_url);
    expect((await aenv(["call", "--reward", "--url", agentUrl.replace(/\/mcp$/, "")])).code).not.toBe(0);
  });

  it("shows it, its logs and its events, starts a new episode, and extends its lifetime", async () => {
    expect((await step("instance", "get", instance.id)).stdout).toMatch(/For agents +http/);
    expect((await step("instance", "logs", instance.id, "--tail", "5")).code).toBe(0);
    expect((await step("instance", "reset", instance.id, "--seed", "9")).stdout).toContain("started a new episode");
    expect(await json("instance", "renew", instance.id, "--ttl", "2h")).toMatchObject({ ttl: "2h" });
    const events = (await look("instance", "events", instance.id)) as { what: string }[];
    expect(events.map(({ what }) => what)).toEqual(expect.arrayContaining(["running", "reset", "renewed for 2h"]));
  });

  it("creates copies that continue from its state", async () => {
    const copies = (await json("instance", "fork", instance.id, "--count", "2")) as InstanceRecord[];
    expect(copies.map(({ status }) => status)).toEqual(["Running", "Running"]);
    expect((await step("instance", "list")).stdout.match(/Running/g)).toHaveLength(3);
  });

  it("refuses to delete a version that is in use", async () => {
    const { code, stderr } = await step("env", "delete", "shop@1.0.0", "--yes");
    expect(code).toBe(1);
    expect(stderr).toContain("aenv instance list");
  });

  it("deletes all of them, but only with a confirmation", async () => {
    const ids = ((await look("instance", "list")) as InstanceRecord[]).map(({ id }) => id);
    const unconfirmed = await step("instance", "delete", ...ids);
    expect([unconfirmed.code, unconfirmed.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    expect(await json("instance", "delete", "--yes", ...ids)).toEqual({ deleted: ids, missing: [] });
    expect((await step("instance", "list")).stdout).toContain("No instances.");
    const gone = await step("instance", "delete", "--yes", "shop-nope");
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("there is no instance 'shop-nope'")]);
  });

  it("downloads a published environment that runs without an installation", async () => {
    const elsewhere = join(tree.path, "elsewhere");
    const pulled = (await json("pull", "shop@1.0.0", "--work-dir", elsewhere)) as { folder: string; files: string[] };
    expect(pulled.folder).toBe(join(elsewhere, "shop"));
    expect(pulled.files).toContain("main.js");
    const { default: definition } = await import(pathToFileURL(join(pulled.folder, "main.js")).href);
    expect(definition.tools.length).toBeGreaterThan(0);

    const again = await step("pull", "shop", "--work-dir", elsewhere);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("--force")]);
    writeFileSync(join(pulled.folder, "mine.txt"), "mine");
    expect((await step("pull", "shop", "--work-dir", elsewhere, "--force")).code).toBe(0);
    expect(JSON.parse(readFileSync(join(pulled.folder, "config.json"), "utf8")).version).toBe("1.0.1");
    expect(readFileSync(join(pulled.folder, "mine.txt"), "utf8")).toBe("mine");
  });

  it("changes who sees it, releases it, and deletes versions that are not released", async () => {
    expect((await step("env", "visibility", "shop@1.0.0", "shared", "--share-with", "ada")).stdout).toContain("shared with ada");
    expect((await look("env", "versions", "shop")) as object[]).toMatchObject([{ version: "1.0.1" }, { sharedWith: ["ada"] }]);
    expect((await step("env", "release", "shop")).code).toBe(2);
    expect((await step("env", "release", "shop@1.0.1")).stdout).toContain("is released");
    expect(await json("env", "delete", "shop@1.0.0", "--yes")).toMatchObject({ deleted: ["1.0.0"] });
    expect(((await look("list", "--name", "shop")) as object[]).length).toBe(1);
  });
});
