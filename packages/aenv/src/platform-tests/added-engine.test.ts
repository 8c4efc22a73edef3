import { childKind } from "@aenv/sandbox/test-engine";
import { expect, it } from "vitest";
import { Environment } from "../index.ts";
import { projects, publish, startPlatform } from "./platform.ts";

it("an engine that is one folder, and named on one line, verifies and runs environments", async () => {
  await using platform = await startPlatform({ engine: childKind });
  const ref = await publish(platform, projects.echo, { isolation: "instance" });
  await using env = await Environment.create(ref, { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl });
  expect(env.runtime).toMatchObject({ engine: "child", isIsolated: false });
  expect((await env.callTool("echo", { text: "hello" })).text).toBe("hello");
  await env.reset();
  expect(await env.callReward()).toMatchObject({ reward: 0 });
  const [{ id }] = (await platform.demand("GET", "/env-instance/*/list")) as [{ id: string }];
  expect(await platform.ask("POST", `/env-instance/${id}/exec`, { command: "true", wait: true })).toMatchObject({
    success: false,
    message: expect.stringContaining("the engine 'child' runs no commands"),
  });
});
