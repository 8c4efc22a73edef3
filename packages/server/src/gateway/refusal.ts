import { PlatformError } from "@aenv/contract";
import type { Target } from "../instances/targets.ts";
import type { Destination } from "./destination.ts";

/**
 * Why a call cannot go to its instance. The error for a link has neither the instance's id, which would give access to the trainer
 * API, nor the reason, which may contain what only the trainer may know.
 */
export function refusalOf(target: Exclude<Target, { kind: "ready" }>, destination: Destination): PlatformError {
  if (destination.api === "port" && (target.kind === "unknown" || target.kind === "gone")) return linkNotFound();
  const isLink = destination.api === "agent" || destination.api === "port";
  const name = nameOf(destination);
  switch (target.kind) {
    case "unknown":
      return new PlatformError("instance.not_found", isLink ? "this agent link is unknown" : `${name} not found`);
    case "starting":
      return new PlatformError("instance.starting", `${name} is still starting; try again in a moment`);
    case "failed":
      return new PlatformError("instance.failed", `${name} has failed${isLink ? "" : `: ${target.row.reason ?? "it has no sandbox"}`}`);
    case "gone":
      return new PlatformError("instance.gone", `${name} has ended${isLink ? "" : `: ${target.row.reason}`}`);
  }
}

export function linkNotFound(): PlatformError {
  return new PlatformError("link.not_found", "this link is unknown or has expired, or its instance has ended; create a new one");
}

function nameOf(destination: Destination): string {
  switch (destination.api) {
    case "agent":
      return "the instance of this agent link";
    case "trainer":
      return `instance '${destination.instanceId}'`;
    case "port":
      return "the instance of this link";
    case "service":
      return `the replica of service '${destination.serviceId}'`;
  }
}
