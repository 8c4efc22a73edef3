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

// What a person does, from an empty folder to an environment that others use: each step builds on those before.
describe("from a new project to instances that others use", { timeout: 60_000 }, () => {
  let platform: Platform;
  let tree: Tree;
  let project: string;
  let instance: InstanceRecord;

  // The steps of the story are processes of their own; what is only looked at in between is looked at from here.
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

  it("begins a project", async () => {
    expect((await run(["init", "shop", "--template", "stateful"], { cwd: tree.path })).code).toBe(0);
    expect(existsSync(join(project, "config.json"))).toBe(true);
  });

  it("says what a push would do, and does not do it", async () => {
    const { code, stdout } = await step("push", "--dry-run");
    expect([code, stdout]).toEqual([0, expect.stringContaining("Would publish shop@1.0.0")]);
    expect(await look("push", "--dry-run")).toMatchObject({ dryRun: true, wouldPublish: true, wouldUpload: true });
    expect(await look("list")).toEqual([]);
  });

  it("publishes it", async () => {
    const { code, stdout, stderr } = await step("push");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`shop@1.0.0 is published at ${platform.controlUrl}`);
    expect(stdout).toContain("aenv instance create shop@1.0.0");
  });

  it("has nothing to do when the same is pushed again", async () => {
    const { code, stdout } = await step("push");
    expect([code, stdout]).toEqual([0, expect.stringContaining("is already published")]);
    expect(await json("push")).toMatchObject({ published: false, name: "shop", version: "1.0.0" });
    expect(await look("push", "--dry-run")).toMatchObject({ wouldPublish: false, wouldUpload: false });
  });

  it("refuses other content under the same version, and takes it under a new one", async () => {
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

  it("lists and shows what is published", async () => {
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

  it("publishes what has its tasks from data that comes later, and says that they could not be listed", async () => {
    await run(["init", "later", "--template", "stateful"], { cwd: tree.path });
    const source =
      'import { defineEnvironment } from "aenvironment";\nexport default defineEnvironment({ tasks: () => { throw new Error("no data yet"); } });\n';
    writeFileSync(join(tree.path, "later/src/index.ts"), source);
    const { code, stderr } = await step("push", "--work-dir", join(tree.path, "later"));
    expect(code).toBe(0);
    expect(stderr).toContain("Its tasks could not be listed on the server: no data yet");
  });

  it("starts an instance that lives on", async () => {
    const argv = ["--ttl", "5m", "--seed", "7", "--label", "run=a", "--env", "MOOD=calm"];
    instance = (await json("instance", "create", "shop@1.0.0", "--keep-alive", ...argv)) as InstanceRecord;
    expect(instance).toMatchObject({ status: "Running", environment: "shop@1.0.0", seed: 7, ttl: "5m", labels: { run: "a" } });
    expect(await look("instance", "list", "--label", "run=a")).toMatchObject([{ id: instance.id }]);
    expect(await look("instances", "--name", "shop", "--version", "1.0.0")).toMatchObject([{ id: instance.id }]);
    expect(await look("instance", "list", "--label", "run=b")).toEqual([]);
  });

  it("is reached by the SDK, by the shell, and by an agent's link only as far as an agent may", async () => {
    const url = `${platform.dataUrl}/env-instance/${instance.id}`;
    await Environment.use("shop", { instanceUrl: url }, async (env) => {
      expect((await env.listTools()).length).toBeGreaterThan(0);
    });
    expect((await aenv(["call", "--list", "--url", url])).stdout).toMatch(/tool/);
    const agentUrl = String(instance.agent_url);
    expect((await aenv(["call", "--reward", "--url", agentUrl.replace(/\/mcp$/, "")])).code).not.toBe(0);
  });

  it("shows it, its logs and its story, begins a new episode, and lets it live longer", async () => {
    expect((await step("instance", "get", instance.id)).stdout).toMatch(/For agents +http/);
    expect((await step("instance", "logs", instance.id, "--tail", "5")).code).toBe(0);
    expect((await step("instance", "reset", instance.id, "--seed", "9")).stdout).toContain("started a new episode");
    expect(await json("instance", "renew", instance.id, "--ttl", "2h")).toMatchObject({ ttl: "2h" });
    const events = (await look("instance", "events", instance.id)) as { what: string }[];
    expect(events.map(({ what }) => what)).toEqual(expect.arrayContaining(["running", "reset", "renewed for 2h"]));
  });

  it("makes copies that go on from there", async () => {
    const copies = (await json("instance", "fork", instance.id, "--count", "2")) as InstanceRecord[];
    expect(copies.map(({ status }) => status)).toEqual(["Running", "Running"]);
    expect((await step("instance", "list")).stdout.match(/Running/g)).toHaveLength(3);
  });

  it("keeps a version that is in use", async () => {
    const { code, stderr } = await step("env", "delete", "shop@1.0.0", "--yes");
    expect(code).toBe(1);
    expect(stderr).toContain("aenv instance list");
  });

  it("ends all of them, but only when it is meant", async () => {
    const ids = ((await look("instance", "list")) as InstanceRecord[]).map(({ id }) => id);
    const asked = await step("instance", "delete", ...ids);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    expect(await json("instance", "delete", "--yes", ...ids)).toEqual({ deleted: ids, missing: [] });
    expect((await step("instance", "list")).stdout).toContain("No instances.");
    const gone = await step("instance", "delete", "--yes", "shop-nope");
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("there is no instance 'shop-nope'")]);
  });

  it("downloads what was published, and that runs by itself", async () => {
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

  it("changes who sees it, releases it, and deletes what is not released", async () => {
    expect((await step("env", "visibility", "shop@1.0.0", "shared", "--share-with", "ada")).stdout).toContain("shared with ada");
    expect((await look("env", "versions", "shop")) as object[]).toMatchObject([{ version: "1.0.1" }, { sharedWith: ["ada"] }]);
    expect((await step("env", "release", "shop")).code).toBe(2);
    expect((await step("env", "release", "shop@1.0.1")).stdout).toContain("is released");
    expect(await json("env", "delete", "shop@1.0.0", "--yes")).toMatchObject({ deleted: ["1.0.0"] });
    expect(((await look("list", "--name", "shop")) as object[]).length).toBe(1);
  });
});
