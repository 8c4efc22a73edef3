import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { bundleOfCode } from "./fixtures/archives.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const soon = { timeout: 20_000, interval: 50 };

/** The current value of a metric. */
async function gauge(platform: Platform, name: string): Promise<number> {
  const text = await (await fetch(`${platform.controlUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
}

describe("warm processes", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { round: "100ms", poolMax: 3 } });
  });
  afterAll(() => platform?.close());

  it("are kept in reserve for the newest version of an environment, and are destroyed when it is deleted", async () => {
    const ref = await publish(platform, projects.probe, { deployConfig: { warm: 2 } });
    const { id } = await platform.create(ref);
    await vi.waitFor(async () => expect(await gauge(platform, "aenv_pool_prepared_ready")).toBeGreaterThanOrEqual(2), soon);
    await platform.demand("DELETE", `/env-instance/${id}`);
    const [name, version] = ref.split("@");
    await platform.demand("DELETE", `/env/${name}/${version}`);
    await vi.waitFor(async () => expect(await gauge(platform, "aenv_pool_prepared_ready")).toBe(0), soon);
    expect(await gauge(platform, "aenv_pool_prepared_target")).toBe(0);
  });

  it("are limited: a publication that asks for more is refused, and the error names the limit", async () => {
    const answer = await platform.ask("POST", "/env", { name: "greedy", version: "1.0.0", deployConfig: { warm: 4 } });
    expect(answer).toMatchObject({
      status: 400,
      error: { code: "environment.invalid" },
      message: expect.stringContaining("deployConfig.warm is 4; this server keeps at most 3"),
    });
    expect((await platform.ask("GET", "/env/greedy/1.0.0")).status).toBe(404);
  });
});

describe("verifications", () => {
  it("beyond the limit wait, and get a 429 with a retry time if they wait too long", async () => {
    await using platform = await startPlatform({ flags: { verifications: 1, startTimeout: "2s" } });
    const names = ["one", "two", "three", "four"];
    const bundles = names.map((name) => bundleOfCode(name, "1.0.0", "await new Promise(() => setInterval(() => {}, 1_000));"));
    for (const { digest, bytes } of bundles) await platform.demand("PUT", `/bundle/${digest}`, bytes);
    const answers = await Promise.all(
      bundles.map(({ digest }, n) =>
        platform.ask("POST", "/env", { name: names[n], version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] }),
      ),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    for (const { headers, error } of refused) {
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(error).toMatchObject({ code: "quota.exceeded", retryable: true });
    }
    expect(answers.filter(({ status }) => status === 504).length).toBeGreaterThan(0);
    expect(await gauge(platform, "aenv_verifications_running")).toBe(0);
  });
});
