import { tmpdir } from "node:os";
import { dirname } from "node:path";
import type { Logger } from "pino";
import type { ServerConfig } from "../config/config.ts";
import { hideFolders, type ShownText } from "../config/shown-text.ts";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import { Audit, REPEAT_MS } from "./audit.ts";
import { DiskProbe } from "./disk.ts";
import { noTracing, openTracing, type Tracing } from "./tracing.ts";

export interface OpenOperationsOptions {
  readonly config: ServerConfig;
  readonly version: string;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** The file of the store; null if it is not on this machine. */
  readonly storeFile: string | null;
  /** The file of the blank runner, if it is one of this machine. */
  readonly runner: string | undefined;
}

/** What operators see of a server, apart from its metrics. */
export interface Operations {
  readonly audit: Audit;
  readonly tracing: Tracing;
  readonly disk: DiskProbe;
  /** Removes the server's folders from what clients read. */
  readonly shown: ShownText;
}

export async function openOperations(options: OpenOperationsOptions): Promise<Operations> {
  const { config, version, logger, lifecycle, storeFile, runner } = options;
  const audit = new Audit({ write: (event) => logger.info(event, "audit") });
  lifecycle.every({ work: async () => audit.flush(), everyMs: REPEAT_MS / 4, failure: "the audit log could not be written" });
  lifecycle.on("close", () => {
    if (lifecycle.wasStarted) audit.stopped();
    logger.flush();
  });
  const tracing = config.otlpUrl === null ? noTracing : await openTracing(config.otlpUrl, version);
  lifecycle.on("close", () => tracing.close());
  const storeFolders = storeFile === null ? [] : [dirname(storeFile)];
  return {
    audit,
    tracing,
    disk: new DiskProbe([config.home, ...storeFolders]),
    shown: hideFolders({
      "<home>": config.home,
      "<data>": config.dataDir,
      "<store>": storeFolders[0] ?? "",
      "<tmp>": tmpdir(),
      "<server>": runner === undefined ? "" : dirname(runner),
    }),
  };
}
