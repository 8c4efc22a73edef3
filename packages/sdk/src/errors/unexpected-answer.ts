import { isObject } from "@aenv/contract";
import { preview } from "./failure.ts";

/**
 * Describes a 2xx response that does not come from an instance. The original's gateway answers an empty 200, or its own health,
 * when the proxy header is missing.
 */
export function describeUnexpected(url: string, body: unknown): string {
  if (body === undefined || isGatewayHealth(body)) {
    return `the gateway at ${url} answered for itself: it did not receive the AEnvCore-MCPProxy-URL header, which a proxy in between may have removed`;
  }
  return `unexpected answer ${preview(JSON.stringify(body))}`;
}

export function isGatewayHealth(body: unknown): boolean {
  return isObject(body) && body.success === undefined && typeof body.message === "string" && body.message.includes("Gateway");
}
