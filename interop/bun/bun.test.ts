import { bunPath, describeNeeding } from "@aenv/testing";
import { expect, it } from "vitest";
import { runProgram } from "./program.ts";

describeNeeding("bun", "the package in Bun", () => {
  // Before: serve crashed on performance.eventLoopUtilization, and the SDK waited for 30 s, because Bun replaces undici.
  it("serves an environment, and uses it with the SDK's default transport", { timeout: 60_000 }, async () => {
    expect(await runProgram(bunPath, "counter.ts")).toEqual({ tools: ["counter/add"], total: 3, reward: 1 });
  });
});
