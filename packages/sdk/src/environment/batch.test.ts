import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../../fixtures/fake-clock.ts";
import { sendJson } from "../../fixtures/http-server.ts";
import { WirePlatform } from "../../fixtures/wire-platform.ts";
import { ValidationError } from "../errors/errors.ts";
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

const options = (more: EnvironmentOptions = {}): EnvironmentOptions => ({
  controlUrl: platform.control.url,
  dataUrl: platform.data.url,
  clock,
  ...more,
});

const paths = () => platform.control.requests.map(({ method, path }) => `${method} ${path}`);

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Answers a batch as an AEnv platform does; the items in `failAt` fail. */
function answerBatches(failAt: readonly number[] = [], before: () => Promise<void> = async () => {}): void {
  let made = 0;
  platform.faults.control = (seen, response) => {
    if (seen.path !== "/env-instance/batch") return false;
    const items = seen.json.requests.map((_: unknown, at: number) => {
      if (failAt.includes(at))
        return { success: false, message: "too many live instances", error: { code: "quota.exceeded", retryable: true } };
      const id = `ours-${made++}`;
      platform.alive.add(id);
      const link = { agent_url: `http://agents.example/agent/${id}/mcp` };
      return { success: true, data: { id, env: null, status: "Running", created_at: "", updated_at: "", ip: "10.244.1.10", ...link } };
    });
    void before().then(() => sendJson(response, { success: true, code: 0, message: "", data: { items } }));
    return true;
  };
}

describe("Environment.createMany", () => {
  it("creates all instances by one request, and its release ends them all", async () => {
    answerBatches();
    {
      await using batch = await Environment.createMany(REF, 3, options({ variables: { A: "1" } }));
      expect(batch.errors).toEqual([]);
      expect(batch.environments).toHaveLength(3);
      await batch.environments[2]?.callTool("get_weather", { city: "Rome" });
      expect(platform.data.requests.at(-1)?.headers["aenvcore-envinstance-id"]).toBe("ours-2");
      expect(paths()).toEqual(["POST /env-instance/batch"]);
      expect(platform.control.requests[0]?.json.requests[1]).toMatchObject({ envName: REF, environment_variables: { A: "1" } });
    }
    expect(platform.alive.size).toBe(0);
  });

  it("lets an instance's options override the common ones", async () => {
    answerBatches();
    await using batch = await Environment.createMany(
      REF,
      [
        { task: "t1", seed: 1 },
        { task: "t2", ttl: "2h" },
      ],
      options({ ttl: "1h" }),
    );
    expect(batch.environments).toHaveLength(2);
    expect(platform.control.requests[0]?.json.requests).toMatchObject([
      { task: "t1", seed: 1, ttl: "1h" },
      { task: "t2", ttl: "2h" },
    ]);
  });

  it("gives a failed item its own error at its index, and keeps the others", async () => {
    answerBatches([1]);
    const batch = await Environment.createMany(REF, 3, options());
    expect(batch.items.map(({ error }) => error === null)).toEqual([true, false, true]);
    expect(batch.items[1]?.error).toMatchObject({
      code: "quota.exceeded",
      retryable: true,
      message: expect.stringContaining("too many live instances"),
    });
    expect(batch.errors).toEqual([batch.items[1]?.error]);
    expect(platform.alive.size).toBe(2);
    await batch.release();
    await batch.release();
    expect(platform.alive.size).toBe(0);
  });

  it("creates instances one by one on a server without batches", async () => {
    const batch = await Environment.createMany(REF, 20, options());
    expect(batch.environments).toHaveLength(20);
    expect(platform.control.count("POST", "/env-instance")).toBe(20);
    await batch.release();
    expect(platform.alive.size).toBe(0);
  });

  it("splits more than a thousand into several requests, each with its own key", async () => {
    answerBatches();
    const batch = await Environment.createMany(REF, 1_001, options());
    expect(batch.environments).toHaveLength(1_001);
    const keys = platform.control.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(2);
    await batch.release();
    expect(platform.alive.size).toBe(0);
  });

  it("ends an instance that does not start", async () => {
    platform.statuses = [{ status: "Failed", ip: "", reason: "no image" }];
    const batch = await Environment.createMany(REF, 2, options());
    expect(batch.environments).toEqual([]);
    expect(batch.errors.map(String)).toEqual([expect.stringContaining("no image"), expect.stringContaining("no image")]);
    expect(platform.alive.size).toBe(0);
  });

  it("throws when the whole request fails", async () => {
    platform.faults.control = (_, response) => {
      sendJson(response, { success: false, code: 401, message: "Invalid token", data: null }, 401);
      return true;
    };
    expect(await failure(Environment.createMany(REF, 2, options()))).toMatchObject({ code: "access.unauthenticated" });
  });

  it("leaves no instance running when the caller aborts first", async () => {
    const controller = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    answerBatches([], () => {
      controller.abort(new Error("enough"));
      return promise;
    });
    expect(await failure(Environment.createMany(REF, 3, options({ signal: controller.signal })))).toEqual(new Error("enough"));
    expect(platform.alive.size).toBe(3);
    platform.faults.control = () => false;
    resolve();
    await expect.poll(() => platform.alive.size).toBe(0);
  });

  it("sends nothing for an aborted signal or a count of zero", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    expect(await failure(Environment.createMany(REF, 2, options({ signal })))).toEqual(new Error("enough"));
    expect((await Environment.createMany(REF, 0, options())).items).toEqual([]);
    expect(platform.control.requests).toEqual([]);
  });

  it.each([-1, 1.5, Number.NaN, 100_001])("rejects a count of %d", async (count) => {
    expect(await failure(Environment.createMany(REF, count, options()))).toBeInstanceOf(ValidationError);
  });

  it("rejects a batch for an instance that already runs", async () => {
    expect(await failure(Environment.createMany(REF, 2, { instanceUrl: platform.data.url }))).toMatchObject({
      name: "ValidationError",
      message: expect.stringContaining("systemUrl"),
    });
  });
});
