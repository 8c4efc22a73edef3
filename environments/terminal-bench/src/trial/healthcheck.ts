import type { HealthcheckConfig } from "../task/config/healthcheck.ts";
import { TrialFailure } from "./failure.ts";

export interface HealthcheckTools {
  /** Runs the command; false if it failed or timed out. */
  readonly attempt: (command: string, timeoutMs: number | undefined) => Promise<boolean>;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Waits until the command succeeds. Attempts that start within the start period do not count. */
export async function waitUntilHealthy(config: HealthcheckConfig, { attempt, now, sleep }: HealthcheckTools): Promise<void> {
  const startedAt = now();
  let failures = 0;
  for (;;) {
    const isStarting = now() - startedAt < config.start_period_sec * 1000;
    if (await attempt(config.command, config.timeout_sec > 0 ? config.timeout_sec * 1000 : undefined)) return;
    if (isStarting) {
      await sleep(config.start_interval_sec * 1000);
      continue;
    }
    if (++failures >= config.retries) {
      throw new TrialFailure("HealthcheckError", `the healthcheck '${config.command}' failed ${failures} times`);
    }
    await sleep(config.interval_sec * 1000);
  }
}
