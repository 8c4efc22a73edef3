import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { loadEnvironment, type Served, serve } from "aenvironment";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const folder = fileURLToPath(new URL(".", import.meta.url));

describe("main.ts", () => {
  it("runs from the tools to the reward and exits", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["main.ts"], { cwd: folder, encoding: "utf8" });
    // The agent gets the message of a tool's error; its stack goes to standard error.
    expect(stderr).toMatch(
      /^tool 'get_weather' of instance 'default' failed: Error: no weather is known for 'Atlantis'; .*\n( {4}at .*\n)+$/,
    );
    expect(status).toBe(0);
    expect(stdout.split("\n").slice(1)).toEqual([
      "tools: weather@1.0.0/list_cities, weather@1.0.0/get_weather, weather@1.0.0/advise",
      'Lisbon: {"city":"Lisbon","sky":"sun","temperature":24,"unit":"celsius"}',
      'Oslo: {"city":"Oslo","sky":"cloud","temperature":11,"unit":"celsius"}',
      'Cardiff: {"city":"Cardiff","sky":"rain","temperature":14,"unit":"celsius"}',
      "a mistake is an answer: no weather is known for 'Atlantis'; known: Lisbon, Oslo, Cardiff",
      "set_weather added Rome: 4 cities",
      "The traveller goes to Oslo.",
      "reward: 0",
      "reward, if 10 degrees will do: 1",
      "The traveller goes to Rome.",
      "reward: 1",
      'health: {"status":"healthy","cities":4}',
      "",
    ]);
  });
});

describe("the environment", () => {
  let sandbox: Served;

  beforeAll(async () => {
    const { name, version, definition } = await loadEnvironment(folder);
    sandbox = await serve(definition, { name, version, port: 0 });
  });
  afterAll(() => sandbox.close());

  const send = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(sandbox.url + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: response.status, body: await response.text() };
  };

  it("serves a function at its registered path and method", async () => {
    const rain = { city: "Lisbon", sky: "rain", celsius: 15 };
    expect(await send("PUT", "/weather", rain)).toEqual({ status: 200, body: '{"success":true,"data":{"cities":3}}' });
    expect((await send("POST", "/weather", rain)).status).toBe(405);
    const list = JSON.parse((await send("GET", "/functions/list")).body);
    expect(list.data.functions).toEqual([expect.objectContaining({ name: "set_weather", endpoint: "/weather", method: "PUT" })]);
  });

  it("names the invalid argument of a function", async () => {
    const { status, body } = await send("PUT", "/weather", { city: "Lisbon", sky: "hail", celsius: 15 });
    expect(status).toBe(500);
    expect(body).toContain("sky");
  });

  it("has one instance per process, and reports why", async () => {
    const { status, body } = await send("POST", "/env-instance", {});
    expect(status).toBe(501);
    expect(body).toContain("use defineEnvironment");
  });
});
