import { isObject } from "@aenv/contract";
import { preview } from "./failure.ts";

/**
 * What to make of a 2xx answer that is none of an instance's. The original's gateway answers an empty 200, or for its
 * own health, when it did not see its proxy header.
 */
export function describeUnexpected(url: string, body: unknown): string {
  if (body === undefined || isGatewayHealth(body)) {
    return `the gateway at ${url} answered for itself: it did not see the AEnvCore-MCPProxy-URL header, which a proxy in between may have removed`;
  }
  return `unexpected answer ${preview(JSON.stringify(body))}`;
}

export function isGatewayHealth(body: unknown): boolean {
  return isObject(body) && body.success === undefined && typeof body.message === "string" && body.message.includes("Gateway");
}
