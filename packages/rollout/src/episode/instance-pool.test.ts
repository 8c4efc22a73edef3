import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstancePool } from "./instance-pool.ts";

const never = new AbortController().signal;
const spec = { task: { id: "greet", split: null, index: null }, seed: 1 };
const MINUTE = 60_000;

describe("instances of a run", () => {
  let platform: Platform;
  let environment: string;
  beforeAll(async () => {
    platform = await startPlatform({ store: "memory:" });
    environment = await publish(platform, projects.echo, { isolation: "shared" });
  });
  afterAll(() => platform?.close());

  function open(options: { readonly ttl?: string } = {}): InstancePool {
    return new InstancePool({
      environment,
      options: { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl, ...options },
      environmentDigest: null,
    });
  }
  const listed = async () => (await platform.demand("GET", "/env-instance/*/list")) as { id: string; ttl: string }[];
  const ids = async () => (await listed()).map(({ id }) => id);

  it("live longer than the episodes that may begin on them", async () => {
    await using instances = open();
    const { release } = await instances.acquire(spec, never, 120 * MINUTE);
    expect(await listed()).toMatchObject([{ ttl: "150m" }]);
    await release(false);
  });

  it("are used again only for an episode that ends before they do", async () => {
    await using instances = open({ ttl: "1h" });
    const first = await instances.acquire(spec, never, 10 * MINUTE);
    const before = await ids();
    await first.release(true);
    const second = await instances.acquire(spec, never, 10 * MINUTE);
    expect(await ids()).toEqual(before);
    await second.release(true);
    const third = await instances.acquire(spec, never, 90 * MINUTE);
    expect(third.instance).not.toBe(first.instance);
    await third.release(false);
  });
});
