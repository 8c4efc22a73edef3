import type { EgressPolicy } from "@aenv/contract";
import type { EnvironmentOptions } from "@aenv/sdk";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";
import type { Platform } from "./platform.ts";

/** The command line options of a new instance. */
export interface StartOptions {
  readonly ttl?: string;
  readonly env?: Record<string, string>;
  readonly arg?: string[];
  readonly datasource?: string;
  readonly owner?: string;
  readonly label?: Record<string, string>;
  readonly task?: string;
  readonly seed?: number;
  readonly snapshot?: string;
  readonly egress?: EgressPolicy;
  readonly secret?: Record<string, string>;
  readonly mount?: Record<string, string>[];
  readonly initCommand?: string;
  readonly skipHealth?: boolean;
  readonly timeout: number;
  readonly startupTimeout: number;
  readonly maxRetries: number;
}

/** The same options for the SDK. Each warning of the server is printed once, however many instances have it. */
export function environmentOptions(options: StartOptions, platform: Platform, terminal: Terminal): EnvironmentOptions {
  const owner = options.owner ?? platform.owner;
  const warned = new Set<string>();
  return {
    controlUrl: platform.url,
    apiKey: platform.apiKey,
    // Empty: the environment's config decides, else the server.
    ttl: options.ttl ?? "",
    timeoutMs: options.timeout,
    startupTimeoutMs: options.startupTimeout,
    maxRetries: options.maxRetries,
    onWarning: (text) => {
      if (!warned.has(text)) warn(terminal, text);
      warned.add(text);
    },
    ...(options.env && { variables: options.env }),
    ...(options.arg && { arguments: options.arg }),
    ...(options.datasource && { datasource: options.datasource }),
    ...(owner && { owner }),
    ...(options.label && { labels: options.label }),
    ...(options.task && { task: options.task }),
    ...(options.seed !== undefined && { seed: options.seed }),
    ...(options.snapshot && { snapshot: options.snapshot }),
    ...(options.egress && { egress: options.egress }),
    ...(options.secret && { secrets: options.secret }),
    ...(options.mount && { mountPoints: options.mount }),
    ...(options.initCommand && { initCommand: options.initCommand }),
    ...(options.skipHealth && { skipHealthCheck: true }),
  };
}

export function stoppedBefore(what: string): Failure {
  return new Failure(`stopped before ${what} was running; nothing is left running`, { exit: "cancelled" });
}
