import type { Logger } from "pino";
import type { ServerConfig } from "../config/config.ts";
import { type Audit, isRefusal } from "../operations/audit.ts";
import type { CallMetrics } from "../operations/call-metrics.ts";
import { Gateway, type GatewayOptions } from "./gateway.ts";
import { tunnelLimits } from "./port-proxy.ts";
import { stallLimits } from "./request-body.ts";

type FromConfig = "publicUrl" | "publicPath" | "idsAreKeys" | "maxBodyBytes" | "stall" | "tunnels";

export interface OpenGatewayOptions extends Omit<GatewayOptions, FromConfig | "onCall" | "onFault"> {
  readonly config: ServerConfig;
  readonly metrics: Pick<CallMetrics, "call">;
  readonly audit: Audit;
  readonly logger: Logger;
}

/** The gateway with the limits of the configuration, whose calls are counted, audited and logged. */
export function openGateway({ config, metrics, audit, logger, ...rest }: OpenGatewayOptions): Gateway {
  return new Gateway({
    ...rest,
    publicUrl: config.publicUrl,
    publicPath: config.publicUrl === null ? "" : new URL(config.publicUrl).pathname.replace(/\/$/, ""),
    idsAreKeys: config.idsAreKeys,
    maxBodyBytes: config.maxBodyBytes,
    stall: stallLimits,
    tunnels: tunnelLimits,
    onCall: ({ api, status, end, durationMs, requestId, instanceId, owner, client }) => {
      metrics.call(api ?? "none", status, end, durationMs);
      // Only refusals by the gateway, not responses of a sandbox.
      if (end === "refused" && isRefusal(status)) audit.refused("data", status, { owner, requestId, client });
      logger.debug({ requestId, instanceId, api, status, end, durationMs }, "call");
    },
    onFault: ({ of, error, ...fault }) => {
      if (of === "platform") logger.error({ ...fault, err: error }, "a call failed unexpectedly");
      else logger.warn({ ...fault, err: error }, "a sandbox was lost or did not respond with valid HTTP");
    },
  });
}
