import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadExample } from "../../fixtures/examples.ts";
import { waitUntilHealthy } from "../healthcheck.ts";
import { planTask } from "./plan.ts";
import { effectiveTimeout, NO_MULTIPLIERS } from "./timeouts.ts";

describe("a plan", () => {
  it("gives steps what they inherit from their task", async () => {
    const [collect, combine] = planTask(await loadExample("harbor/steps-mean"));
    expect([collect?.verifier.env, combine?.verifier.env]).toEqual([{ LEVEL: "step" }, { LEVEL: "task" }]);
    // The reference would take 600 seconds here.
    expect(collect?.verifier.timeoutSec).toBe(60);
    expect(combine?.verifier.testFolders.map((folder) => folder.split("steps-mean/")[1])).toEqual(["tests", "steps/combine/tests"]);
  });

  it("uses the step's environment for a separate verification", async () => {
    const [draft, publish] = planTask(await loadExample("harbor/steps-final"));
    expect(draft?.verifier.environment).toBeNull();
    expect([draft?.agent.user, publish?.agent.user]).toEqual(["worker", "root"]);
    expect(publish?.verifier).toMatchObject({
      environment: {
        config: { workdir: "/" },
        definition: { kind: "dockerfile", context: expect.stringContaining("steps/publish/tests") },
        hasTests: true,
      },
    });
  });

  it("runs tests of Terminal-Bench 1 with bash as root", async () => {
    const [only] = planTask(await loadExample("terminal-bench-1/hello-world"));
    expect(only?.verifier).toMatchObject({ command: "bash /tests/run-tests.sh", user: "root", parser: "pytest", timeoutSec: 30 });
  });

  it("multiplies timeouts after their cap", async () => {
    const multipliers = { ...NO_MULTIPLIERS, timeout_multiplier: 2, agent_timeout_multiplier: 3 };
    const [only] = planTask(await loadExample("harbor/hello-file"), { multipliers, maxAgentTimeoutSec: 10, verifierTimeoutSec: 5 });
    expect([only?.agent.timeoutSec, only?.verifier.timeoutSec]).toEqual([30, 10]);
  });
});

describe("timeouts", () => {
  it("without a base have no limit, and 0 is no override", () => {
    expect(effectiveTimeout({ override: 0, base: null, max: 5 }, null, 2)).toBeNull();
    expect(effectiveTimeout({ override: 0, base: 7, max: null }, null, 1)).toBe(7);
  });

  it("never exceed the multiplied cap", () => {
    const seconds = fc.double({ min: 0.1, max: 1e5, noNaN: true });
    fc.assert(
      fc.property(
        seconds,
        seconds,
        fc.double({ min: 0.1, max: 10, noNaN: true }),
        (base, max, factor) => (effectiveTimeout({ override: null, base, max }, null, factor) ?? 0) <= max * factor,
      ),
    );
  });
});

describe("a healthcheck", () => {
  const config = { command: "c", interval_sec: 5, timeout_sec: 1, start_period_sec: 10, start_interval_sec: 2, retries: 2 };

  async function check(failures: number): Promise<{ readonly waits: number[]; readonly error: unknown }> {
    let clock = 0;
    let left = failures;
    const waits: number[] = [];
    const error = await waitUntilHealthy(config, {
      attempt: async () => left-- <= 0,
      now: () => clock,
      sleep: async (ms) => {
        waits.push(ms);
        clock += ms;
      },
    }).catch((thrown: unknown) => thrown);
    return { waits, error };
  }

  it("does not count attempts in the start period", async () => {
    expect(await check(6)).toEqual({ waits: [2000, 2000, 2000, 2000, 2000, 5000], error: undefined });
  });

  it("fails after its retries", async () => {
    expect((await check(7)).error).toMatchObject({ type: "HealthcheckError" });
  });
});
