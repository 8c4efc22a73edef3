import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../../fixtures/fake-clock.ts";
import { sendJson } from "../../fixtures/http-server.ts";
import { WirePlatform } from "../../fixtures/wire-platform.ts";
import { ValidationError } from "../errors/errors.ts";
import { SchedulerClient } from "../platform/scheduler-client.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

const REF = "weather-demo@1.0.0";

let platform: WirePlatform;
let clock: FakeClock;
beforeEach(async () => {
  platform = await WirePlatform.open();
  clock = fakeClock();
});
afterEach(() => platform[Symbol.asyncDispose]());

function weather(options: EnvironmentOptions = {}): Environment {
  return new Environment(REF, { controlUrl: platform.control.url, dataUrl: platform.data.url, clock, ...options });
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe("an environment without the data plane", () => {
  beforeEach(() => {
    platform.engine = "arca";
  });

  it("is ready as soon as it runs, also without an address, and sends nothing to the data port", async () => {
    {
      await using env = await Environment.create(REF, {
        controlUrl: platform.control.url,
        dataUrl: platform.data.url,
        clock,
        dataPlane: false,
      });
      expect(await env.getEnvInfo()).toMatchObject({ status: "Running", ip: "" });
      await env.waitForReady();
      expect(await env.presignUrl(3000)).toBe("https://arca.example/session/weather-demo-a1b2c0-3000-5");
      expect(await env.presignUrl(80, { minutes: 0.5 })).toMatch(/-80-0\.5$/);
    }
    expect(platform.data.requests).toEqual([]);
    expect(platform.alive.size).toBe(0);
  });

  it("rejects calls that need it at once, without opening an instance, and names presignUrl", async () => {
    const env = weather({ dataPlane: false });
    const asked: [string, () => Promise<unknown>][] = [
      ["listTools", () => env.listTools()],
      ["callTool", () => env.callTool("get_weather", {})],
      ["listFunctions", () => env.listFunctions()],
      ["callFunction", () => env.callFunction("x")],
      ["callReward", () => env.callReward()],
      ["callReward", () => env.score()],
      ["checkHealth", () => env.checkHealth()],
      ["tasks", () => env.tasks()],
      ["reset", () => env.reset()],
      ["snapshot", () => env.snapshot()],
      ["restore", () => env.restore({})],
    ];
    for (const [name, ask] of asked) {
      expect(await failure(ask())).toMatchObject({
        name: "EnvironmentError",
        code: "instance.unsupported",
        message: expect.stringMatching(new RegExp(`^${name} is not available.*presignUrl`)),
      });
    }
    expect([...platform.control.requests, ...platform.data.requests]).toEqual([]);
  });

  it("is what the error suggests when a server has no data plane", async () => {
    expect(await failure(weather({ startupTimeoutMs: 5_000 }).initialize())).toMatchObject({
      message: expect.stringContaining("without an address"),
    });
    expect(platform.alive.size).toBe(0);
  });
});

describe("a link to a port", () => {
  it("reports an engine that does not support it, with the engine's message", async () => {
    const env = weather();
    expect(await failure(env.presignUrl(3000))).toMatchObject({
      code: "instance.unsupported",
      message: expect.stringContaining("not supported on this engine (k8s): presign URL"),
    });
    await env.release();
  });

  it("reports an older server that does not support it", async () => {
    platform.faults.control = (seen, response) => {
      if (!seen.path.endsWith("/presign-url")) return false;
      response.writeHead(404).end("404 page not found");
      return true;
    };
    const env = weather();
    expect(await failure(env.presignUrl(3000))).toMatchObject({ code: "instance.unsupported" });
    await env.release();
  });

  it.each([0, -1, 1.5, 65_536, Number.NaN])("is rejected for the port %d", async (port) => {
    const scheduler = new SchedulerClient(platform.control.url);
    expect(await failure(scheduler.presignUrl("x", port))).toBeInstanceOf(ValidationError);
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])("is rejected for %d minutes", async (minutes) => {
    const scheduler = new SchedulerClient(platform.control.url);
    expect(await failure(scheduler.presignUrl("x", 80, { minutes }))).toBeInstanceOf(ValidationError);
  });

  it.each([{}, { url: "" }, null])("rejects the response %j", async (data) => {
    platform.faults.control = (_, response) => {
      sendJson(response, { success: true, code: 0, message: "", data });
      return true;
    };
    expect(await failure(new SchedulerClient(platform.control.url).presignUrl("x", 80))).toBeInstanceOf(ValidationError);
  });

  it("is created only by a platform", async () => {
    const env = new Environment(REF, { instanceUrl: platform.data.url });
    expect(await failure(env.presignUrl(3000))).toMatchObject({ code: "instance.unsupported" });
  });
});

describe("an option that only some engines support", () => {
  it("is sent only if it is set", async () => {
    const mountPoints = [{ id: "OSS_1", remote_dir: "/data", local_dir: "/workspace", read_only: true }];
    for (const options of [{ mountPoints, initCommand: "sleep 1" }, { mountPoints: [] }, {}])
      await Environment.use(REF, { ...base(), ...options }, () => {});
    const bodies = platform.control.requests
      .filter(({ method }) => method === "POST")
      .map(({ json }) => [json.mount_points, json.init_command]);
    expect(bodies).toEqual([
      [mountPoints, "sleep 1"],
      [[], undefined],
      [undefined, undefined],
    ]);
  });

  it("gives a warning if it was not applied, reported once and kept", async () => {
    platform.faults.control = (seen, response) => {
      if (seen.method !== "POST") return false;
      platform.alive.add("ours-1");
      const data = { id: "ours-1", env: null, status: "Pending", created_at: "", updated_at: "", warnings: ["nothing was mounted"] };
      sendJson(response, { success: true, code: 0, message: "", data });
      return true;
    };
    const told: string[] = [];
    const logged: unknown[] = [];
    const logger = { debug() {}, info() {}, error() {}, warn: (_: string, fields?: unknown) => logged.push(fields) };
    const env = weather({ onWarning: (warning) => told.push(warning), logger });
    expect(env.warnings).toEqual([]);
    await env.initialize();
    await env.callTool("get_weather", { city: "Rome" });
    expect([env.warnings, told]).toEqual([["nothing was mounted"], ["nothing was mounted"]]);
    expect(logged).toEqual([{ env: REF, instance: "ours-1", warning: "nothing was mounted" }]);
    await env.release();
  });

  it("keeps the environment open when the onWarning listener throws", async () => {
    platform.faults.control = (seen, response) => {
      if (seen.method !== "POST") return false;
      platform.alive.add("ours-1");
      const data = { id: "ours-1", env: null, status: "Running", ip: "10.244.1.10", created_at: "", updated_at: "", warnings: ["w"] };
      sendJson(response, { success: true, code: 0, message: "", data });
      return true;
    };
    const onWarning = () => {
      throw new Error("listener");
    };
    const env = weather({ onWarning });
    expect((await env.callTool("get_weather", { city: "Rome" })).isError).toBe(false);
    await env.release();
  });
});

function base(): EnvironmentOptions {
  return { controlUrl: platform.control.url, dataUrl: platform.data.url, clock };
}
