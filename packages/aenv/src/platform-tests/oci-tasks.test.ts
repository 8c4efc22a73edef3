import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, dockerAuth, type ImageRegistry, pushSmallImage, startImageRegistry, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { startServerProcess } from "./crash/server-process.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describeNeeding("runc", "environments with sandboxes for their tasks, with the engine oci", () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "aenv-tasks-")));
  let registry: ImageRegistry;
  let flags: Record<string, unknown>;
  let platform: Platform;

  beforeAll(async () => {
    registry = await startImageRegistry();
    for (const tag of ["one", "two"]) await pushSmallImage(registry, { name: `team/tasks:${tag}`, files: { "task.txt": `task ${tag}\n` } });
    const auth = temporaryTree({ "auth.json": dockerAuth(registry) });
    flags = { engine: "oci", registryAuth: join(auth.path, "auth.json"), insecureRegistries: [registry.host] };
    platform = await startPlatform({ home, flags });
  }, 120_000);
  afterAll(async () => {
    await platform?.close();
    await registry?.[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });

  const bash = async (id: string, command: string, more: object = {}) => {
    const { text, isError, message } = await callTool(urlOf(platform, id), "bash", { command, ...more });
    if (text === null || isError) throw new Error(`the call failed: ${text} ${message}`);
    return JSON.parse(text);
  };
  const left = () => readdirSync(join(home, "oci/sandboxes")).filter((name) => name.startsWith("task-"));

  it("runs commands in the image that the datasource names, and leaves nothing", async () => {
    const ref = await publish(platform, projects.repair, {
      deployConfig: { podTemplate: "dualcontainer", imagePrefix: `${registry.host}/team/tasks` },
    });
    const { id } = await platform.create(ref, { datasource: "two" });
    expect(await bash(id, "cat /task.txt; echo oops >&2; exit 3")).toMatchObject({ exitCode: 3, stdout: "task two\n", stderr: "oops\n" });
    await platform.demand("DELETE", `/env-instance/${id}`);
    expect(left()).toEqual([]);
  }, 120_000);
});
