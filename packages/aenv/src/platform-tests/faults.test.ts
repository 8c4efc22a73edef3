import { expect, it, vi } from "vitest";
import { callTool } from "./calls.ts";
import { startChild } from "./child.ts";
import { projects, publish } from "./platform.ts";

it("logs a sandbox that dies during a call once, with the ids of the request and the instance", async () => {
  await using child = await startChild({ logLevel: "warn" });
  const { id, agent_url: link } = await child.create(await publish(child, projects.probe));
  const called = await callTool(String(link), "crash", {}, { headers: { "x-request-id": "the-crash" } });
  expect(called.status).toBe(502);
  const lines = () =>
    child
      .log()
      .split("\n")
      .filter((line) => line.includes("the-crash"));
  await vi.waitUntil(() => lines().length > 0, { timeout: 5_000 });
  expect(lines().map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, requestId: "the-crash", instanceId: id, api: "agent", err: { message: expect.any(String) } },
  ]);
  expect(child.log()).not.toContain(String(link).split("/")[4]);
});
