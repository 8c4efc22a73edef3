import type { EngineHost } from "@aenv/sandbox";
import type { Logger } from "pino";
import type { SandboxEvents } from "./instances/sandbox-events.ts";
import type { Metrics } from "./operations/metrics.ts";

export interface EngineReportsOptions {
  readonly logger: Logger;
  readonly logFailure: (message: string) => (error: unknown) => void;
  readonly events: () => SandboxEvents;
  readonly metrics: () => Metrics;
}

/** What an engine reports goes to the log, to the owners of the instances and to the metrics. */
export function engineReports(options: EngineReportsOptions): Omit<EngineHost, "runner"> {
  const { logger, logFailure, events, metrics } = options;
  return {
    log: (line) => logger.info(line),
    warn: (line) => logger.warn(line),
    onRefused: (refused) => {
      logger.warn(refused, "the egress policy of a sandbox refused an outgoing connection");
      events().refused(refused).catch(logFailure("a refused connection could not be noted"));
    },
    onLimit: (reached) => {
      logger.warn(reached, "a sandbox has reached a limit");
      events().reachedLimit(reached).catch(logFailure("a limit that was reached could not be noted"));
    },
    onReady: (durationMs) => metrics().podReady(durationMs),
  };
}
