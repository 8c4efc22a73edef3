import type { DatasetMetric } from "../dataset/open.ts";
import type { MetricType, RewardMap } from "../metrics/metrics.ts";
import { hasProgram, scriptMetric, UV } from "../metrics/script.ts";

/** The metrics of a run. */
export interface RunMetrics {
  readonly types: readonly MetricType[];
  /** The answers of scripts over the rewards of all trials, and why there is none. */
  compute(rewards: readonly (RewardMap | null)[]): Promise<{
    readonly computed: readonly Readonly<Record<string, number>>[];
    readonly failures: readonly string[];
  }>;
}

/**
 * The metrics of a dataset. A script is a program of the dataset that runs on this machine, so it is run only if `allow` says so. Throws
 * if it may run and cannot, before anything is played.
 */
export async function openMetrics(metrics: readonly DatasetMetric[], allow: string | undefined, program = UV): Promise<RunMetrics> {
  const types = metrics.flatMap(({ type }) => (type === "uv-script" ? [] : [type]));
  const scripts = metrics.flatMap((metric) => (metric.type === "uv-script" ? [metric.script] : []));
  const isAllowed = allow === "true";
  if (scripts.length > 0 && isAllowed && !(await hasProgram(program)))
    throw new Error(
      `a metric of the dataset is a script, which the program ${program} runs; install it, or unset TERMINAL_BENCH_METRIC_SCRIPTS`,
    );
  return {
    types: metrics.length === 0 ? ["mean"] : types,
    compute: async (rewards) => {
      const computed: Record<string, number>[] = [];
      const failures: string[] = [];
      for (const script of scripts) {
        if (!isAllowed) {
          failures.push("it is a script of the dataset, which runs on this machine with TERMINAL_BENCH_METRIC_SCRIPTS=true");
          continue;
        }
        try {
          computed.push(await scriptMetric(script, rewards, program));
        } catch (error) {
          failures.push(`${script}: ${(error as Error).message.split("\n")[0]}`);
        }
      }
      return { computed, failures };
    },
  };
}
