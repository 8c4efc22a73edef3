import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const soon = { timeout: 20_000, interval: 20 };
const CONFIG = { environment_variables: { FROM_CONFIG: "config", BOTH: "config", NODE_EXTRA_CA_CERTS: "/publishers/own.pem" } };
const NAMES = ["FROM_CONFIG", "BOTH", "GREETING", "envNAME", "envversion", "AENV_DATASOURCE"];

let platform: Platform;
let probe: string;
let shared: string;
beforeAll(async () => {
  platform = await startPlatform({ flags: { round: "50ms", poolMin: 1 } });
  probe = await publish(platform, projects.probe, { deployConfig: CONFIG });
  shared = await publish(platform, projects.probe, { deployConfig: CONFIG, isolation: "shared" });
});
afterAll(() => platform?.close());

const inProcess = (id: string, names: readonly string[] = NAMES) => callFunction(platform, id, "processVariables", { names });

async function inInstance(id: string, names: readonly string[] = NAMES): Promise<unknown[]> {
  const values = [];
  for (const name of names) values.push((await callTool(urlOf(platform, id), "variable", { name })).text);
  return values;
}

describe("a caller's variables", () => {
  const refused = { NODE_OPTIONS: "--import=data:text/javascript,1", LD_PRELOAD: "/x.so", PATH: "/tmp", AENV_STORAGE: "/", "A=B": "1" };

  it.each(Object.entries(refused))("are refused with 400 if %s is among them, on every route", async (name, value) => {
    const environment_variables = { FINE: "1", [name]: value };
    await platform.demand("POST", "/env-service", { envName: probe, service_name: "good", replicas: 1 }).catch(() => {});
    const requests = [
      ["POST", "/env-instance", { envName: probe, environment_variables }],
      ["POST", "/env-instance", { envName: shared, environment_variables }],
      ["POST", "/env-service", { envName: probe, environment_variables }],
      ["PUT", "/env-service/good", { environment_variables }],
    ] as const;
    for (const [method, path, body] of requests) {
      const answer = await platform.ask(method, path, body);
      expect(answer, path).toMatchObject({ status: 400, error: { code: "request.invalid" } });
      expect(answer.message).toContain(`environment_variables: '${name}'`);
    }
    const batch = (await platform.demand("POST", "/env-instance/batch", { envName: probe, environment_variables, count: 2 })) as {
      items: { message: string }[];
    };
    for (const { message } of batch.items) expect(message).toContain(`'${name}'`);
  });

  it("override the environment's own, also in a fork", async () => {
    const { id } = await platform.create(probe, { environment_variables: { BOTH: "request", GREETING: "hi" }, datasource: "case-1" });
    const expected = ["config", "request", "hi", "probe", "1.0.0", "case-1"];
    expect(await inProcess(id)).toEqual(expected);
    expect(await inInstance(id)).toEqual(expected);
    const [fork] = (await platform.demand("POST", `/env-instance/${id}/fork`, { count: 1 })) as { id: string }[];
    expect(await inProcess(fork?.id ?? "")).toEqual(expected);
  });

  it("may be omitted: the server adds what the original's clients send", async () => {
    const { id } = await platform.create(probe);
    expect(await inProcess(id, ["FROM_CONFIG", "envNAME", "envversion", "NODE_EXTRA_CA_CERTS"])).toEqual([
      "config",
      "probe",
      "1.0.0",
      "/publishers/own.pem",
    ]);
    const sent = await platform.create(probe, { environment_variables: { envNAME: "probe", envversion: "" } });
    expect(await inProcess(sent.id, ["envNAME", "envversion"])).toEqual(["probe", "1.0.0"]);
  });

  it("are separate per instance in a shared process, whose environment has only the publisher's", async () => {
    const one = await platform.create(shared, { environment_variables: { GREETING: "one" } });
    const two = await platform.create(shared, { environment_variables: { BOTH: "two" } });
    expect(await inInstance(one.id)).toEqual(["config", "config", "one", "probe-shared", "1.0.0", ""]);
    expect(await inInstance(two.id)).toEqual(["config", "two", "", "probe-shared", "1.0.0", ""]);
    expect(await inProcess(one.id)).toEqual(["config", "config", null, "probe-shared", "1.0.0", null]);
    expect(await callFunction(platform, one.id, "pid")).toBe(await callFunction(platform, two.id, "pid"));
  });

  it("reach a service's replicas with the environment's own, overridden by the platform's", async () => {
    const body = { envName: probe, service_name: "vars", environment_variables: { BOTH: "service" }, storage_size: "1Gi" };
    await platform.demand("POST", "/env-service", body);
    const { id } = await vi.waitFor(async () => {
      const { items } = (await platform.demand("GET", "/env-instance/list?envName=probe&status=Running")) as {
        items: { id: string; service?: string }[];
      };
      const found = items.find(({ service }) => service === "vars");
      expect(found).toBeDefined();
      return found as { id: string };
    }, soon);
    const [both, config, name, type, storage] = (await inProcess(id, [
      "BOTH",
      "FROM_CONFIG",
      "envNAME",
      "AENV_TYPE",
      "AENV_STORAGE",
    ])) as string[];
    expect([both, config, name, type]).toEqual(["service", "config", "probe", "service"]);
    expect(storage).toContain(platform.home);
    await platform.demand("PUT", "/env-service/vars", { environment_variables: { envNAME: "probe" } });
  });
});

describe("a publisher's config", () => {
  it("may not set variables of the platform", async () => {
    const config = { name: "forged", version: "1.0.0", deployConfig: { environment_variables: { AENV_SANDBOX: "/x" } } };
    const answer = await platform.ask("POST", "/env", config);
    expect(answer).toMatchObject({ status: 400, error: { code: "environment.invalid" } });
    expect(answer.message).toContain("'AENV_SANDBOX' is set by the platform");
  });
});
