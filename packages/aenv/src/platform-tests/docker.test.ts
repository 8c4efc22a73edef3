import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type DockerDaemon,
  describeNeeding,
  dockerAuth,
  pushSmallImage,
  startDocker,
  startImageRegistry,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { projects, publish, startPlatform } from "./platform.ts";
import { frozenMetrics, untilFrozen } from "./testing/frozen.ts";
import { seenLimits } from "./testing/limits.ts";

describeNeeding("docker", "a platform with the engine docker", () => {
  let daemon: DockerDaemon;

  beforeAll(async () => {
    daemon = await startDocker();
  }, 120_000);

  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]();
  }, 60_000);

  it("publishes an environment, calls its tool, scores it, and runs commands in its sandbox", async () => {
    await using platform = await startPlatform({ flags: { engine: "docker", dockerSocket: daemon.socket } });
    const ref = await publish(platform, projects.echo);
    const { id } = await platform.create(ref);
    expect(await callTool(urlOf(platform, id), "echo", { text: "hello" })).toMatchObject({ status: 200, isError: false });
    const scored = await fetch(urlOf(platform, id, "/task/reward"), {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    expect(await scored.json()).toMatchObject({ data: { reward: 1 } });
    const script = "console.log(fs.existsSync(process.argv[1]), fs.readdirSync('/proc').filter(Number).length < 9)";
    const command = ["node", "-e", script, platform.home];
    expect(await platform.demand("POST", `/env-instance/${id}/exec`, { command, wait: true })).toMatchObject({ stdout: "false true\n" });
    await platform.demand("DELETE", `/env-instance/${id}`);
  }, 60_000);

  it("gives an environment the processors and the memory of its deployConfig", async () => {
    await using platform = await startPlatform({ flags: { engine: "docker", dockerSocket: daemon.socket } });
    const seen = await seenLimits(platform, { cpu: "500m", memory: "700Mi", ephemeralStorage: "5G" });
    expect(seen).toMatchObject({ memoryMb: 700, cpus: 0.5 });
  }, 60_000);

  it("freezes an idle instance, and continues it by a call of a tool and by a command", async () => {
    await using platform = await startPlatform({ flags: { engine: "docker", dockerSocket: daemon.socket, freezeAfter: "500ms" } });
    const { id } = await platform.create(await publish(platform, projects.echo, { isolation: "instance" }));
    await untilFrozen(platform, id);
    expect(await frozenMetrics(platform)).toMatchObject({ instances: 1, seconds: 0 });
    expect(await callTool(urlOf(platform, id), "echo", { text: "hello" })).toMatchObject({ status: 200, isError: false });
    // The row says that it is frozen a moment before it is.
    await expect.poll(async () => (await frozenMetrics(platform)).seconds).toBeGreaterThan(0);
    await untilFrozen(platform, id);
    const run = await platform.demand("POST", `/env-instance/${id}/exec`, { command: ["node", "-p", "1 + 1"], wait: true });
    expect(run).toMatchObject({ stdout: "2\n" });
  }, 60_000);

  describeNeeding("runsc", "and gVisor", () => {
    it("starts a sandbox of gVisor with open egress, and refuses policies of rewards that it could not apply later", async () => {
      await using platform = await startPlatform({ flags: { engine: "docker", dockerSocket: daemon.socket } });
      const deployConfig = { isolation: "instance", runtime: "runsc", egress: "open" };
      const { id } = await platform.create(await publish(platform, projects.echo, { deployConfig }));
      expect(await callTool(urlOf(platform, id), "echo", { text: "hello" })).toMatchObject({ status: 200, isError: false });
      await platform.demand("DELETE", `/env-instance/${id}`);
      for (const [project, config, why] of [
        [projects.probe, { runtime: "runsc", rewardEgress: "open" }, "gVisor reads its network at the start"],
        [projects.tally, { runtime: "runsc", rewardEgress: { allow: ["judge.example"] } }, "gVisor reads its network at the start"],
      ] as const) {
        const envName = await publish(platform, project, { deployConfig: { isolation: "instance", ...config } });
        const { status, message } = await platform.ask("POST", "/env-instance", { envName });
        expect(status).toBe(501);
        expect(message).toContain(why);
      }
    }, 120_000);
  });

  describeNeeding("docker-registry", "and a registry", () => {
    it("runs an environment with a second container, a shared folder and a fresh sandbox for its reward", async () => {
      await using registry = await startImageRegistry();
      using auth = temporaryTree({ "auth.json": dockerAuth(registry) });
      const config = { WorkingDir: "/home/app", User: "app" };
      await pushSmallImage(registry, { name: "team/tasks:one", files: { "task.txt": "task one\n" }, config });
      const flags = {
        engine: "docker",
        dockerSocket: daemon.socket,
        registryAuth: join(auth.path, "auth.json"),
        imageRegistries: [registry.host],
      };
      await using platform = await startPlatform({ flags });
      const deployConfig = { podTemplate: "DualContainer", imagePrefix: `${registry.host}/team/tasks:` };
      const ref = await publish(platform, projects.repair, { deployConfig });
      const { id } = await platform.create(ref, { datasource: "one" });
      const bash = async (command: string, more: object = {}) =>
        JSON.parse((await callTool(urlOf(platform, id), "bash", { command, ...more })).text ?? "null");
      expect(await bash("cat /task.txt; id -u; pwd")).toMatchObject({ exitCode: 0, stdout: "task one\n1000\n/home/app\n" });
      await bash("echo from the agent > /shared/note");
      expect(await callFunction(platform, id, "shared")).toBe("from the agent\n");
      await bash("mkdir /planted; echo cheated > /task.txt; echo -n 42 > /answer", { user: "root" });
      const scored = await fetch(urlOf(platform, id, "/task/reward"), { method: "POST", body: "{}" });
      expect(await scored.json()).toMatchObject({ data: { reward: 1, seen: "task one\n" } });
      const fork = await platform.ask("POST", `/env-instance/${id}/fork`, { count: 1 });
      expect(fork).toMatchObject({ status: 501 });
      await platform.demand("DELETE", `/env-instance/${id}`);
      expect(readdirSync(join(platform.home, "docker/sandboxes")).filter((name) => name.startsWith("task-"))).toEqual([]);
      expect(readdirSync(join(platform.home, "shared"))).toEqual([]);
    }, 120_000);
  });
});
