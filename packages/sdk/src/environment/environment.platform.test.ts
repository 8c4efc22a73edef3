import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../../fixtures/fake-clock.ts";
import { sendJson } from "../../fixtures/http-server.ts";
import { WirePlatform } from "../../fixtures/wire-platform.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

const REF = "weather-demo@1.0.0";
const AGENT_URL = "http://127.0.0.1:8081/agent/abcdefghij234567abcd/mcp";
const A2A_URL = "http://127.0.0.1:8081/agent/abcdefghij234567abcd/";

let platform: WirePlatform;
let clock: FakeClock;
beforeEach(async () => {
  platform = await WirePlatform.open();
  clock = fakeClock();
});
afterEach(() => platform[Symbol.asyncDispose]());

/** Answers a create request as an AEnv platform does: when the instance runs, and with its agent URL. */
function answerAsOurs(status = "Running"): void {
  platform.faults.control = (seen, response) => {
    if (seen.method !== "POST" || seen.path !== "/env-instance") return false;
    platform.alive.add("ours-1");
    const ip = status === "Running" ? "10.244.1.10" : "";
    const data = { id: "ours-1", env: null, status, created_at: "", updated_at: "", ip, agent_url: AGENT_URL, a2a_url: A2A_URL };
    sendJson(response, { success: true, code: 0, message: "", data });
    return true;
  };
}

function weather(options: EnvironmentOptions = {}): Environment {
  return new Environment(REF, { controlUrl: platform.control.url, dataUrl: platform.data.url, clock, ...options });
}

describe("on an AEnv platform", () => {
  it("opens a healthy instance with one request", async () => {
    answerAsOurs();
    const env = weather();
    await env.initialize();
    expect(platform.control.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["POST /env-instance"]);
    expect(platform.data.requests).toEqual([]);
    await env.release();
    expect(platform.alive.size).toBe(0);
  });

  it("lets the server hold its response when a start takes longer", async () => {
    answerAsOurs("Creating");
    const env = weather({ timeoutMs: 10_000 });
    await env.initialize();
    const [, look] = platform.control.requests;
    expect([look?.path, look?.query.get("wait")]).toEqual(["/env-instance/ours-1", "5000ms"]);
    expect(clock.sleeps).toEqual([]);
    await env.release();
  });

  it("returns the agent URL and the base URL for A2A that the platform reports", async () => {
    answerAsOurs();
    const env = weather();
    expect(await env.agentUrl()).toBe(AGENT_URL);
    expect(await env.a2aUrl()).toBe(A2A_URL);
    await env.release();
  });

  it("sends requests of any size, unless a limit is set", async () => {
    answerAsOurs();
    const city = "x".repeat(1_100_000);
    const env = weather();
    expect((await env.callTool("get_weather", { city })).isError).toBe(false);
    const strict = weather({ maxRequestBytes: 1_000_000 });
    await expect(strict.callTool("get_weather", { city })).rejects.toMatchObject({ code: "request.too_large" });
    await Promise.all([env.release(), strict.release()]);
  });

  it("passes variables by their short name too, and the first episode's task and seed", async () => {
    answerAsOurs();
    const env = weather({ environmentVariables: { A: "1", B: "1" }, variables: { B: "2" }, task: "t1", seed: 7 });
    await env.initialize();
    const variables = { A: "1", B: "2", envNAME: "weather-demo", envversion: "1.0.0" };
    expect(platform.control.requests[0]?.json).toMatchObject({ environment_variables: variables, task: "t1", seed: 7 });
    await env.release();
  });
});

describe("a data port that requires a token", () => {
  /** Answers a create request with the data port's URL, which requires a token. */
  function answerAt(dataUrl: string | undefined): void {
    platform.faults.control = (seen, response) => {
      if (seen.method !== "POST") return false;
      platform.alive.add("ours-1");
      const told = { agent_url: AGENT_URL, data_url: dataUrl, data_access: "token" };
      const data = { id: "ours-1", env: null, status: "Running", created_at: "", updated_at: "", ip: "10.244.1.10", ...told };
      sendJson(response, { success: true, code: 0, message: "", data });
      return true;
    };
  }
  const tokens = () => new Set(platform.data.requests.map(({ headers }) => headers.authorization));

  it("receives it on the host of the control API", async () => {
    answerAt(platform.data.url);
    const env = new Environment(REF, { systemUrl: platform.control.url, apiKey: "secret", clock });
    await env.callTool("get_weather", { city: "Rome" });
    await env.checkHealth();
    expect(tokens()).toEqual(new Set(["Bearer secret"]));
    await env.release();
  });

  it("does not receive it on another host, and the error says what to do", async () => {
    answerAt("http://data.example:8081");
    const env = new Environment(REF, { systemUrl: platform.control.url, apiKey: "secret", clock });
    await expect(env.initialize()).rejects.toMatchObject({
      code: "access.denied",
      message: expect.stringMatching(/data\.example:8081 .* another host .*dataUrl/),
    });
    expect(platform.alive.size).toBe(0);
  });

  it("receives it if the caller sets dataUrl", async () => {
    answerAt("http://data.example:8081");
    const env = weather({ apiKey: "secret" });
    await env.callTool("get_weather", { city: "Rome" });
    expect(tokens()).toEqual(new Set(["Bearer secret"]));
    await env.release();
  });

  it("does not pass it to another host by a redirect", async () => {
    const other = await WirePlatform.open();
    answerAt(platform.data.url);
    platform.faults.data = (_, response) => {
      response.writeHead(307, { location: `${other.data.url}/mcp` }).end();
      return true;
    };
    const env = weather({ apiKey: "secret" });
    await expect(env.callTool("get_weather", { city: "Rome" })).rejects.toThrow();
    expect(other.data.requests).toEqual([]);
    await env.release();
    await other[Symbol.asyncDispose]();
  });
});

describe("without an AEnv platform", () => {
  it("has no agent URL, and the error names the address of the tools", async () => {
    const env = weather();
    await expect(env.agentUrl()).rejects.toMatchObject({
      code: "instance.unsupported",
      message: expect.stringContaining(`${platform.data.url}/mcp`),
    });
    await env.release();
  });
});
