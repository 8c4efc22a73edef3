import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describeNeeding, pythonPath } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { deadUrl } from "../../fixtures/http-server.ts";
import { Environment } from "./environment.ts";

const tools = join(import.meta.dirname, "../../fixtures/weather/tools.py");

describeNeeding("python", "an environment that the original Python SDK serves", () => {
  let python: ChildProcess;
  let env: Environment;

  beforeAll(async () => {
    const instanceUrl = await deadUrl();
    const args = ["-W", "ignore", "-m", "aenv.main", tools, "--host", "127.0.0.1", "--port", new URL(instanceUrl).port];
    python = spawn(pythonPath, args, { stdio: "ignore", env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } });
    const answers = () =>
      fetch(`${instanceUrl}/functions/list`).then(
        () => true,
        () => false,
      );
    await vi.waitUntil(answers, { timeout: 50_000, interval: 100 });
    // Its health check only supports port 8081.
    env = new Environment("weather@1.0.0", { instanceUrl, skipHealthCheck: true });
  });
  afterAll(async () => {
    await env?.release();
    if (python.exitCode !== null) return;
    // SIGKILL, because it would wait for the aborted call.
    python.kill("SIGKILL");
    await once(python, "exit");
  });

  it("lists its tools", async () => {
    expect(await env.listTools()).toMatchObject([
      { name: "weather@1.0.0/get_weather", description: "Weather of a city.", inputSchema: { required: ["city"] } },
      { name: "weather@1.0.0/fail" },
      { name: "weather@1.0.0/slow" },
    ]);
  });

  it("answers a tool call, with structured content and with the tool's failure", async () => {
    const result = await env.callTool("get_weather", { city: "Beijing" });
    expect(result.structuredContent).toEqual({ city: "Beijing", temperature: "20" });
    expect(JSON.parse(result.text)).toEqual({ city: "Beijing", temperature: "20" });
    expect(await env.callTool("fail", { why: "because" })).toMatchObject({ isError: true, text: expect.stringContaining("because") });
    expect(await env.callTool("unheard-of")).toMatchObject({ isError: true });
  });

  it("answers many calls at once", async () => {
    const cities = Array.from({ length: 32 }, (_, at) => `city-${at}`);
    const answers = await Promise.all(cities.map((city) => env.callTool("get_weather", { city })));
    expect(answers.map((answer) => answer.json<{ city: string }>().city)).toEqual(cities);
  });

  it("continues after an aborted call", async () => {
    await expect(env.callTool("slow", { seconds: 30 }, { timeoutMs: 200 })).rejects.toMatchObject({ name: "ToolTimeoutError" });
    expect((await env.callTool("slow", { seconds: 0 })).text).toBe("slept");
  });

  it("answers functions, also those that its own client cannot call, and rewards", async () => {
    expect(await env.callFunction("get_weather_func", { city: "Rome" })).toEqual({ city: "Rome" });
    expect(await env.callFunction("add", { a: 1, b: 2 })).toBe(3);
    expect(await env.callReward({ city: "Beijing" })).toBe(true);
    expect(await env.score({ city: "Rome" })).toEqual({ reward: 0, components: {} });
    await expect(env.callReward({ bad: 1 })).rejects.toMatchObject({ code: "reward.failed" });
  });

  it("says nothing about its episode", async () => {
    expect(Object.values(await env.episode.abilities())).not.toContain(true);
    await expect(env.episode.prompt()).rejects.toMatchObject({ code: "instance.unsupported" });
    expect((await env.callTool("get_weather", { city: "Rome" })).status).toBeUndefined();
  });

  it("reports that it has no tasks, snapshots or forks", async () => {
    await expect(env.tasks()).rejects.toMatchObject({ code: "instance.unsupported" });
    await expect(env.snapshot()).rejects.toMatchObject({ code: "instance.unsupported" });
    await expect(env.fork()).rejects.toMatchObject({ code: "instance.unsupported" });
  });
});
