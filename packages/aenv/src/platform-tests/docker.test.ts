import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { projects, publish, startPlatform } from "./platform.ts";

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
});
