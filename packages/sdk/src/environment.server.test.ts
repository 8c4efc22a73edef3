import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./environment-options.ts";

describe("against a real server", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
    for (const project of [projects.echo, projects.probe]) await publish(platform, project);
  });
  afterAll(() => platform?.close());

  const options = (more: EnvironmentOptions = {}): EnvironmentOptions => ({
    controlUrl: platform.controlUrl,
    dataUrl: platform.dataUrl,
    ...more,
  });
  const running = () => platform.demand("GET", "/env-instance/*/list?status=Running") as Promise<unknown[]>;

  it("creates a batch, says which item failed and why, and ends all of it", async () => {
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
});
