import type { TaskConfig } from "../task/config/config.ts";
import { parseTaskConfig } from "../task/config/config.ts";
import type { Tb1Config } from "./config.ts";

/** The directory of tests in the container. */
export const TEST_DIR = "/tests";

/** A task of Terminal-Bench 1 in the current format. */
export function convertConfig(tb1: Tb1Config): TaskConfig {
  const { author_name, author_email, difficulty, category, tags } = tb1;
  const estimates = {
    estimated_duration_sec: tb1.estimated_duration_sec,
    expert_time_estimate_min: tb1.expert_time_estimate_min,
    junior_time_estimate_min: tb1.junior_time_estimate_min,
  };
  const known = Object.entries(estimates).filter(([, value]) => value !== null);
  return parseTaskConfig({
    schema_version: "1.0",
    metadata: { author_name, author_email, difficulty, category, tags, ...Object.fromEntries(known) },
    agent: { timeout_sec: tb1.max_agent_timeout_sec },
    verifier: {
      timeout_sec: tb1.max_test_timeout_sec,
      env: { TEST_DIR, COLUMNS: "160" },
      ...(!tb1.run_tests_in_same_shell && { user: "root" }),
    },
  });
}

/** A prompt ends with a line break. */
export function convertInstruction(instruction: string): string {
  return instruction.endsWith("\n") ? instruction : `${instruction}\n`;
}
