import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../../fixtures/fake-clock.ts";
import { sendJson } from "../../fixtures/http-server.ts";
import { WirePlatform } from "../../fixtures/wire-platform.ts";
import { EnvironmentError, NetworkError, ValidationError } from "../errors/errors.ts";
import type { Transport } from "../http/http.ts";
import { defaultTransport } from "../transport/node.ts";
import { SchedulerClient } from "./scheduler-client.ts";
import type { SchedulerClientOptions } from "./scheduler-options.ts";

let platform: WirePlatform;
let clock: FakeClock;
beforeEach(async () => {
  platform = await WirePlatform.open();
  clock = fakeClock();
});
afterEach(() => platform[Symbol.asyncDispose]());

function scheduler(options: SchedulerClientOptions = {}): SchedulerClient {
  return new SchedulerClient(platform.control.url, { clock, apiKey: "secret", ...options });
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe("creating an instance", () => {
  const request = { envName: "weather-demo@1.0.0", ttl: "30m", environment_variables: { A: "1" } };

  it("sends the original clients' request, and parses the response", async () => {
    const instance = await scheduler().createInstance(request);
    expect(instance).toMatchObject({ id: "weather-demo-a1b2c0", status: "Pending", created_at: "", ip: "", ttl: "" });
    const [seen] = platform.control.requests;
    expect(seen?.json).toEqual({ ...request, datasource: "" });
    expect(seen?.headers).toMatchObject({ authorization: "Bearer secret", "content-type": "application/json", accept: "application/json" });
  });

  it("sends one idempotency key per create, also when it is repeated", async () => {
    let refused = 0;
    platform.faults.control = (_, response) => {
      if (refused++ > 2) return false;
      if (refused === 1) response.destroy();
      else if (refused === 2) response.writeHead(503).end();
      else response.writeHead(429, { "retry-after": "1" }).end();
      return true;
    };
    await scheduler({ maxRetries: 5 }).createInstance(request);
    await scheduler().createInstance(request);
    const keys = platform.control.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(5);
    expect(new Set(keys.slice(0, 4)).size).toBe(1);
    expect(keys[4]).not.toBe(keys[0]);
    expect(platform.control.requests.map(({ headers }) => headers["env-instance-trace-id"])).toEqual(keys);
    expect(clock.sleeps[2]).toBe(1_000);
  });

  it.each([500, 502, 504])("is not repeated after a %i, which may come after half of the work", async (status) => {
    platform.faults.control = (_, response) => {
      sendJson(response, { success: false, code: status, message: "no", data: null }, status);
      return true;
    };
    expect(await failure(scheduler().createInstance(request))).toBeInstanceOf(EnvironmentError);
    expect(platform.control.requests).toHaveLength(1);
  });

  it("is not repeated after a lost response if the server ignores keys", async () => {
    platform.faults.control = (_, response) => {
      response.destroy();
      return true;
    };
    expect(await failure(scheduler({ dedupesCreate: false }).createInstance(request))).toBeInstanceOf(NetworkError);
    expect(platform.control.requests).toHaveLength(1);
  });

  it("reports an unknown environment, although the original answers 500", async () => {
    expect(await failure(scheduler().createInstance({ envName: "nope@1.0.0" }))).toMatchObject({
      name: "EnvironmentError",
      code: "environment.not_found",
      message: expect.stringContaining("could not create an instance of 'nope@1.0.0'"),
    });
  });

  it("applies the timeout to each attempt, and reports the last as a timeout", async () => {
    platform.faults.control = () => true;
    let sent = 0;
    const transport: Transport = {
      send: (one) => {
        sent++;
        return defaultTransport.send(one);
      },
    };
    expect(await failure(scheduler({ timeoutMs: 15, maxRetries: 1, transport }).createInstance(request))).toMatchObject({
      name: "NetworkError",
      code: "request.timeout",
    });
    expect(sent).toBe(2);
  });
});

describe("getting instances", () => {
  it("gets one by its id", async () => {
    const { id } = await scheduler().createInstance({ envName: "weather-demo@1.0.0" });
    expect(await scheduler().getInstance(id)).toMatchObject({ id, status: "Running", ip: "10.244.1.10", env: null });
  });

  it("reports not found from the original's 500", async () => {
    expect(await failure(scheduler().getInstance("gone"))).toMatchObject({ code: "instance.not_found", retryable: false });
  });

  it("accepts null as an empty list, and both formats of a list", async () => {
    expect(await scheduler().listInstances()).toEqual([]);
    const { id } = await scheduler().createInstance({ envName: "weather-demo@1.0.0" });
    expect((await scheduler().listInstances()).map((one) => one.id)).toEqual([id]);
    const [item] = await scheduler().listInstances();
    platform.faults.control = (_, response) => {
      sendJson(response, { success: true, code: 0, message: "", data: { items: [item] } });
      return true;
    };
    expect(await scheduler().listInstances()).toEqual([item]);
  });

  it("filters by version and status itself, since the original ignores them", async () => {
    await scheduler().createInstance({ envName: "weather-demo@1.0.0" });
    expect(await scheduler().listInstances({ ref: "weather-demo@1.0.0", status: "Running" })).toHaveLength(1);
    expect(await scheduler().listInstances({ ref: "weather-demo@2.0.0" })).toHaveLength(0);
    expect(await scheduler().listInstances({ status: "Pending" })).toHaveLength(0);
    expect(platform.control.requests.at(-2)?.path).toBe("/env-instance/weather-demo%402.0.0/list");
  });

  it("keeps the server's error code and request id", async () => {
    platform.faults.control = (_, response) => {
      const error = { code: "access.denied", retryable: false, requestId: "req-7" };
      sendJson(response, { success: false, code: 403, message: "not yours", data: null, error }, 403);
      return true;
    };
    expect(await failure(scheduler().getInstance("x"))).toMatchObject({ code: "access.denied", requestId: "req-7" });
  });

  it.each([
    ["not JSON", "<html>", ValidationError],
    ["not an instance", JSON.stringify({ success: true, code: 0, message: "", data: { id: 7 } }), ValidationError],
    ["a failure under 200", JSON.stringify({ success: false, code: 0, message: "odd", data: null }), EnvironmentError],
  ])("rejects a response that is %s", async (_, body, kind) => {
    platform.faults.control = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(body);
      return true;
    };
    expect(await failure(scheduler().getInstance("x"))).toBeInstanceOf(kind);
  });
});

describe("deleting an instance", () => {
  it("returns whether the instance existed", async () => {
    const { id } = await scheduler().createInstance({ envName: "weather-demo@1.0.0" });
    expect(await scheduler().deleteInstance(id)).toBe(true);
    expect(await scheduler().deleteInstance(id)).toBe(false);
  });

  it("is repeated when the response is lost", async () => {
    const { id } = await scheduler().createInstance({ envName: "weather-demo@1.0.0" });
    let lost = 0;
    platform.faults.control = (_, response) => {
      if (lost++ > 0) return false;
      response.destroy();
      return true;
    };
    expect(await scheduler().deleteInstance(id)).toBe(true);
    expect(platform.alive.size).toBe(0);
  });
});

describe("waiting for a status", () => {
  async function created(): Promise<string> {
    return (await scheduler().createInstance({ envName: "weather-demo@1.0.0" })).id;
  }

  it("polls at growing intervals", async () => {
    platform.statuses = [
      { status: "Pending", ip: "" },
      { status: "Unknown", ip: "" },
      { status: "Running", ip: "10.244.1.10" },
    ];
    expect(await scheduler().waitForStatus(await created(), "Running")).toMatchObject({ status: "Running" });
    expect(clock.sleeps).toEqual([50, 75]);
  });

  it("waits for the address too", async () => {
    platform.statuses = [
      { status: "Running", ip: "" },
      { status: "Running", ip: "10.244.1.10" },
    ];
    expect(await scheduler().waitForStatus(await created(), "Running")).toMatchObject({ ip: "10.244.1.10" });
  });

  it.each(["Failed", "Terminated", "Succeeded"])("throws at once when the instance is %s, with the reason", async (status) => {
    platform.statuses = [{ status, ip: "", reason: "ImagePullBackOff" }];
    expect(await failure(scheduler().waitForStatus(await created(), "Running"))).toMatchObject({
      name: "EnvironmentError",
      code: "instance.start_failed",
      message: expect.stringMatching(`is ${status} and will not become Running: ImagePullBackOff`),
    });
    expect(clock.sleeps).toEqual([]);
  });

  it("throws at once when the instance is gone", async () => {
    expect(await failure(scheduler().waitForStatus("gone", "Running"))).toMatchObject({ code: "instance.not_found" });
  });

  it("names the last status after the timeout", async () => {
    platform.statuses = [{ status: "Pending", ip: "" }];
    expect(await failure(scheduler().waitForStatus(await created(), "Running", { timeoutMs: 500 }))).toMatchObject({
      code: "instance.start_timeout",
      message: expect.stringContaining("its last status was Pending"),
    });
  });
});

it("reports that a server without forks does not support them", async () => {
  expect(await failure(scheduler().forkInstance("x", 2))).toMatchObject({ code: "instance.unsupported" });
});

describe("instances of an AEnv platform", () => {
  /** Answers every request with this data. */
  function answering(answer: (path: string, query: URLSearchParams) => unknown): void {
    platform.faults.control = ({ path, query }, response) => {
      sendJson(response, { success: true, code: 0, message: "", data: answer(path, query) });
      return true;
    };
  }
  const record = (id: string) => ({ id, env: null, status: "Running", created_at: "", updated_at: "", ip: id });

  it("sends the server's wait time only if it is set", async () => {
    answering(() => record("a"));
    await scheduler().createInstance({ envName: "x" });
    await scheduler().createInstance({ envName: "x" }, { wait: false });
    expect(platform.control.requests.map(({ json }) => json.wait)).toEqual([undefined, false]);
  });

  it("are listed page by page, by every filter", async () => {
    answering((_, query) => (query.has("after") ? { items: [record("c")], next: null } : { items: [record("a"), record("b")], next: "b" }));
    const found: string[] = [];
    for await (const { id } of scheduler().eachInstance({ ref: "x@1", labels: { run: "a b", k: "v" } })) found.push(id);
    expect(found).toEqual(["a", "b", "c"]);
    const [first, second] = platform.control.requests;
    expect([first?.query.getAll("label"), first?.query.get("envName"), second?.query.get("after")]).toEqual([
      ["run=a b", "k=v"],
      "x@1",
      "b",
    ]);
  });

  it("are renewed and reset, and have a history", async () => {
    const begun = { task: { id: "t" }, seed: 3, observation: "go" };
    answering((path) => (path.endsWith("/events") ? [{ at: "now", what: "running" }] : path.endsWith("/reset") ? begun : record("a")));
    expect(await scheduler().renewInstance("a", "1h")).toMatchObject({ id: "a" });
    expect(await scheduler().resetInstance("a", { task: "t", seed: 3 })).toEqual(begun);
    expect(await scheduler().listEvents("a")).toEqual([{ at: "now", what: "running" }]);
    expect(platform.control.requests.map(({ method, path, json }) => [method, path, json])).toEqual([
      ["POST", "/env-instance/a/renew", { ttl: "1h" }],
      ["POST", "/env-instance/a/reset", { task: "t", seed: 3 }],
      ["GET", "/env-instance/a/events", undefined],
    ]);
  });

  async function collect(lines: AsyncIterable<string>): Promise<string[]> {
    const found: string[] = [];
    for await (const line of lines) found.push(line);
    return found;
  }

  it("have logs, and with `follow` new lines as they are printed", async () => {
    platform.faults.control = ({ query }, response) => {
      if (query.get("follow") === "true") response.end("data: one\n\n: ping\n\ndata: two\n\n");
      else response.end("one\ntwo\n");
      return true;
    };
    expect(await collect(scheduler().logs("a", { tail: 2 }))).toEqual(["one", "two"]);
    expect(await collect(scheduler().logs("a", { follow: true }))).toEqual(["one", "two"]);
    expect(platform.control.requests.map(({ query }) => query.toString())).toEqual(["tail=2", "follow=true"]);
  });

  it("are no longer followed after the signal aborts", async () => {
    platform.faults.control = (_, response) => response.write("data: one\n\n");
    const controller = new AbortController();
    const reason = new Error("enough");
    const following = async () => {
      for await (const _ of scheduler().logs("a", { follow: true, signal: controller.signal })) controller.abort(reason);
    };
    expect(await failure(following())).toBe(reason);
  });
});
