import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { temporaryTree } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { HttpRequest, Transport } from "../http/http.ts";
import { HubClient } from "../platform/hub-client.ts";
import { ServiceClient } from "../platform/service-client.ts";
import { defaultTransport } from "../transport/node.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("against a real server", () => {
  let platform: Platform;
  const secrets = temporaryTree({ "default/my-key": "sesame" });
  beforeAll(async () => {
    platform = await startPlatform({ flags: { secretsDir: secrets.path } });
    for (const project of [projects.echo, projects.probe]) await publish(platform, project);
  });
  afterAll(async () => {
    await platform?.close();
    secrets[Symbol.dispose]();
  });

  const options = (more: EnvironmentOptions = {}): EnvironmentOptions => ({
    controlUrl: platform.controlUrl,
    dataUrl: platform.dataUrl,
    ...more,
  });
  const running = () => platform.demand("GET", "/env-instance/*/list?status=Running") as Promise<unknown[]>;

  it("creates a batch, reports the item that failed and why, and ends all instances", async () => {
    {
      const wanted = [{}, { variables: { SETUP: "fail" } }, { labels: { place: "third" } }];
      await using batch = await Environment.createMany("probe@1.0.0", wanted, options());
      expect(batch.items[1]?.error).toMatchObject({ message: expect.stringContaining("told to fail in setup") });
      expect(batch.environments).toHaveLength(2);
      const counts = await Promise.all(batch.environments.map((env) => env.callTool("count")));
      expect(counts.map(({ text }) => text)).toEqual(["1", "1"]);
      expect(await running()).toHaveLength(2);
    }
    expect(await running()).toEqual([]);
  });

  it.each(["127.0.0.1", "localhost"])("is found by only the address of its control API, on host %s", async (name) => {
    const systemUrl = platform.controlUrl.replace("127.0.0.1", name);
    const text = await Environment.use("echo@1.0.0", { systemUrl }, async (env) => {
      const [copy] = await env.fork(1);
      await using fork = copy as Environment;
      return [(await env.callTool("echo", { text: "hello" })).text, (await fork.callTool("echo", { text: "again" })).text];
    });
    expect(text).toEqual(["hello", "again"]);
  });

  it("says what the environment says about its episode", async () => {
    await using env = await Environment.create("echo@1.0.0", options());
    const [task] = await env.tasks();
    await env.reset({ task: task?.id ?? "" });
    expect(await env.episode.abilities()).toMatchObject({
      prompt: true,
      reply: true,
      status: true,
      stepRewards: true,
      digest: true,
      oracle: true,
      observation: false,
      hear: false,
    });
    expect((await env.episode.prompt()).messages.map(({ role }) => role)).toEqual(["system", "user"]);
    const before = await env.episode.digest();
    for (const action of (await env.episode.oracle()) ?? []) {
      if ("say" in action) {
        expect(await env.episode.reply({ role: "assistant", content: action.say })).toMatchObject({ status: { done: true } });
      } else {
        expect(await env.callTool(action.tool, action.arguments)).toMatchObject({ isError: false, status: { done: false } });
        expect(await env.episode.stepReward()).toMatchObject({ reward: expect.any(Number) });
      }
    }
    expect(await env.score()).toMatchObject({ reward: 1 });
    expect(await env.episode.digest()).not.toBe(before);
    expect(await env.episode.status()).toEqual({ done: false, reason: null });
  });

  it("reports the defaults of an environment that says nothing about its episode", async () => {
    await using env = await Environment.create("probe@1.0.0", options());
    expect(Object.values(await env.episode.abilities())).not.toContain(true);
    expect(await env.episode.oracle()).toBeNull();
    expect((await env.callTool("count")).status).toBeUndefined();
    await expect(env.episode.stepReward()).rejects.toMatchObject({ code: "reward.missing" });
  });

  it("warns that its engine does not support mounts, and opens the environment", async () => {
    const told: string[] = [];
    const mountPoints = [{ id: "data", remote_dir: "/", local_dir: "/data" }];
    const more = { mountPoints, initCommand: "sleep 1", onWarning: (warning: string) => told.push(warning) };
    const warnings = await Environment.use("echo@1.0.0", options(more), async (env) => {
      expect((await env.callTool("echo", { text: "hello" })).text).toBe("hello");
      return env.warnings;
    });
    expect(warnings).toEqual([expect.stringContaining("mount_points"), expect.stringContaining("init_command")]);
    expect(told).toEqual(warnings);
    expect(await Environment.use("echo@1.0.0", options(), (env) => env.warnings)).toEqual([]);
  });

  it("gives the instance the caller's secret, and asks for no more connections than the environment allows", async () => {
    const more = { secrets: { API_KEY: "my-key" }, egress: "none" } as const;
    const [value, warnings] = await Environment.use("probe@1.0.0", options(more), async (env) => {
      return [(await env.callTool("variable", { name: "API_KEY" })).text, env.warnings];
    });
    expect([value, warnings]).toEqual(["sesame", [expect.stringContaining("egress ignored")]]);
    const wide = options({ egress: { allow: ["example.com:443"] } });
    await expect(Environment.create("probe@1.0.0", wide)).rejects.toThrow("egress allows 'example.com:443'");
  });

  it("keeps the variables of the environment's config if the options set none, or others", async () => {
    const deployConfig = { environment_variables: { GREETING: "from the config" } };
    const ref = await publish(platform, projects.probe, { version: "1.1.0", deployConfig });
    const read = (options: EnvironmentOptions) =>
      Environment.use(ref, { systemUrl: platform.controlUrl, ...options }, async (env) => {
        const values = ["GREETING", "OTHER", "envNAME"].map((name) => env.callTool("variable", { name }));
        return (await Promise.all(values)).map(({ text }) => text);
      });
    expect(await read({})).toEqual(["from the config", expect.any(String), "probe"]);
    expect(await read({ variables: { OTHER: "mine" } })).toEqual(["from the config", "mine", "probe"]);
    expect(await read({ variables: { GREETING: "mine" } })).toEqual(["mine", expect.any(String), "probe"]);
  });

  it("is found by AENV_SYSTEM_URL with a port, without options", async () => {
    vi.stubEnv("AENV_SYSTEM_URL", platform.controlUrl);
    try {
      expect((await Environment.use("echo@1.0.0", (env) => env.callTool("echo", { text: "hello" }))).text).toBe("hello");
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe.runIf(process.platform === "linux")("a link to a port, by a real server", () => {
  let platform: Platform;
  let port: number;
  beforeAll(async () => {
    platform = await startPlatform();
    port = await freePort();
    await publish(platform, projects.window, { ports: [port] });
  });
  afterAll(() => platform?.close());

  it("reaches the server on that port, with and without the data plane", async () => {
    for (const dataPlane of [true, false]) {
      const options = { systemUrl: platform.controlUrl, dataPlane, variables: { LISTEN: String(port) } };
      await Environment.use("window@1.0.0", options, async (env) => {
        const url = await env.presignUrl(port, { minutes: 1 });
        expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ method: "GET", url: "/healthz" });
      });
    }
  });

  it("is rejected for a port that the environment does not declare", async () => {
    await Environment.use("window@1.0.0", { systemUrl: platform.controlUrl }, async (env) => {
      await expect(env.presignUrl(1)).rejects.toMatchObject({
        code: "instance.unsupported",
        message: expect.stringContaining("not supported on this engine (process): presign URL"),
      });
    });
  });
});

describe("against a real server that requires tokens, also on the data port", () => {
  let platform: Platform;
  let apiKey: string;
  let strangersKey: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on", idsAreKeys: false } });
    const key = async (owner: string) => (await platform.token(owner, "publisher", "trainer")).authorization.replace("Bearer ", "");
    apiKey = await key("ada");
    strangersKey = await key("eve");
    await publish(platform, projects.echo, { headers: { authorization: `Bearer ${apiKey}` } });
  });
  afterAll(() => platform?.close());

  it.each(["the URL that the server reports", "an explicit dataUrl"])("every method works by %s", async (how) => {
    const { controlUrl, dataUrl } = platform;
    const options = { systemUrl: controlUrl, apiKey, ...(how !== "the URL that the server reports" && { dataUrl }) };
    await using env = await Environment.create("echo@1.0.0", options);
    expect((await env.listTools()).length).toBeGreaterThan(0);
    expect((await env.callTool("echo", { text: "hello" })).text).toBe("hello");
    expect(await env.callFunction("transcript")).toMatchObject({ echoes: ["hello"] });
    expect(await env.score()).toMatchObject({ reward: expect.any(Number) });
    await env.waitForReady();
    expect(await env.checkHealth()).toMatchObject({ success: true });
    const [copy] = await env.fork(1);
    await using fork = copy as Environment;
    expect((await fork.callTool("echo", { text: "again" })).text).toBe("again");
  });

  it("a batch works too", async () => {
    await using batch = await Environment.createMany("echo@1.0.0", 2, { systemUrl: platform.controlUrl, apiKey });
    const answers = await Promise.all(batch.environments.map((env) => env.callTool("echo", { text: "hello" })));
    expect(answers.map(({ text }) => text)).toEqual(["hello", "hello"]);
  });

  it("an owner's token passed with the address opens an instance; the variable's, another owner's and none do not", async () => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const { id } = await platform.create("echo@1.0.0", {}, headers);
    const instanceUrl = `${platform.dataUrl}/env-instance/${id}`;
    const call = (options: EnvironmentOptions) =>
      Environment.use("echo@1.0.0", { instanceUrl, ...options }, (env) => env.callTool("echo", { text: "hello" }));
    expect((await call({ apiKey })).text).toBe("hello");
    await expect(call({ apiKey: strangersKey })).rejects.toMatchObject({ code: "instance.not_found" });
    vi.stubEnv("AENV_API_KEY", apiKey);
    try {
      await expect(call({ skipHealthCheck: true })).rejects.toMatchObject({ code: "access.unauthenticated" });
    } finally {
      vi.unstubAllEnvs();
    }
    await platform.demand("DELETE", `/env-instance/${id}`, undefined, headers);
  });

  it("an upload that is rejected before it is read reports the reason", async () => {
    const hub = new HubClient(platform.controlUrl, { apiKey: "aenv_no_token" });
    const digest = `sha256:${"0".repeat(64)}`;
    const upload = hub.uploadBundle(digest, new Uint8Array(32 * 1024 * 1024));
    await expect(upload).rejects.toMatchObject({ code: "access.unauthenticated" });
  });

  it("a service is used by its address and a token", async () => {
    const services = new ServiceClient(platform.controlUrl, { apiKey });
    const { id, service_url } = await services.create({ envName: "echo@1.0.0", replicas: 1 });
    await expect.poll(async () => (await services.get(id)).available_replicas, { timeout: 20_000 }).toBe(1);
    const use = (options: EnvironmentOptions) =>
      Environment.use("echo", { instanceUrl: service_url ?? "", ...options }, (env) => env.callTool("echo", { text: "hello" }));
    expect((await use({ apiKey })).text).toBe("hello");
    await expect(use({ skipHealthCheck: true })).rejects.toMatchObject({ code: "access.unauthenticated" });
    await services.delete(id);
  });
});

it("the token is sent to the data port of a server where ids are keys too, so that it outlives the token that created the instance", async () => {
  await using platform = await startPlatform({ flags: { access: "on" } });
  const headers = await platform.token("ada", "publisher", "trainer");
  const ref = await publish(platform, projects.echo, { headers });
  const seen: HttpRequest[] = [];
  const transport: Transport = {
    send: (request) => {
      seen.push(request);
      return defaultTransport.send(request);
    },
  };
  const apiKey = headers.authorization.replace("Bearer ", "");
  await Environment.use(ref, { systemUrl: platform.controlUrl, apiKey, transport }, (env) => env.callTool("echo", { text: "hello" }));
  const sent = seen.map(({ url, headers: { authorization } }) => [new URL(url).origin, authorization !== undefined]);
  expect(sent).toContainEqual([platform.dataUrl, true]);
  expect(sent).not.toContainEqual([platform.dataUrl, false]);
  expect(sent).toContainEqual([platform.controlUrl, true]);
});
