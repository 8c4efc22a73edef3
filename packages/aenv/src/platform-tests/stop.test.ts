import { describeNeeding, startRedis } from "@aenv/testing";
import { expect, it } from "vitest";
import { projects, publish, startPlatform } from "./platform.ts";
import { processesOf } from "./processes.ts";

describeNeeding("redis", "a server that is stopped while its store is unavailable", () => {
  it.each(["killed", "hanging"] as const)(
    "destroys its sandboxes and its warm processes: Redis is %s",
    { timeout: 90_000 },
    async (how) => {
      await using redis = await startRedis();
      await using platform = await startPlatform({ store: redis.url, flags: { poolMin: 1 } });
      for (const isolation of ["instance", "shared"] as const) {
        const ref = await publish(platform, projects.probe, { isolation });
        for (let n = 0; n < 2; n++) await platform.create(ref);
      }
      expect(processesOf(platform.home).length).toBeGreaterThanOrEqual(3);
      if (how === "killed") await redis.stop("SIGKILL");
      else redis.signal("SIGSTOP");
      // Fails if a process or a sandbox is left.
      await platform.close();
      if (how === "hanging") redis.signal("SIGCONT");
    },
  );
});
