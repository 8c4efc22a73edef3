import { type EnvironmentConfig, PlatformError } from "@aenv/contract";
import type { SandboxEngine } from "@aenv/sandbox";
import type { Caller } from "../../access/access.ts";
import type { Hub } from "../../hub/hub.ts";
import { type Container, readAddress } from "../../instances/containers.ts";
import type { Instances } from "../../instances/instances.ts";
import { type InstanceRow, isLive, slotOf } from "../../instances/row.ts";
import { isolationOf } from "../../slots/isolation.ts";
import type { PortLink, PortLinks } from "./links.ts";

export interface PresignOptions {
  readonly instances: Instances;
  readonly hub: Hub;
  readonly links: PortLinks;
  readonly engine: Pick<SandboxEngine, "name" | "can">;
}

export const DEFAULT_MINUTES = 5;
/** The longest lifetime of a link; longer requests are shortened. */
export const MAX_MINUTES = 24 * 60;

/** Creates links to ports inside sandboxes. */
export class Presign {
  readonly #options: PresignOptions;

  constructor(options: PresignOptions) {
    this.#options = options;
  }

  /**
   * Creates a link for `ID`, `ID.main` or `ID.second`. This is allowed as soon as the instance exists; whether a process listens on the
   * port is checked when the link is used.
   */
  async link(address: string, port: number, minutes: number, caller: Caller): Promise<PortLink> {
    const { instances, links, engine } = this.#options;
    const named = readAddress(address);
    const row = await instances.get(named.id, caller);
    if (!isLive(row)) slotOf(row);
    const config = await this.#configOf(row);
    const container = named.container ?? containerOf(row, config, port);
    const problem =
      named.container === "second" && row.taskSandboxes === undefined ? NO_SECOND : portProblem(config, port, engine, container);
    if (problem !== null) {
      throw new PlatformError("instance.unsupported", `not supported on this engine (${engine.name}): presign URL; ${problem}`);
    }
    return links.issue(row, { port, ...(container !== null && { container }) }, Math.min(minutes, MAX_MINUTES) * 60_000);
  }

  /** Resolved with all rights: a caller that may see the instance may use its environment, even if that is no longer shared. */
  async #configOf({ owner, environment: { name, version } }: InstanceRow): Promise<EnvironmentConfig> {
    const admin: Caller = { owner, roles: new Set(["admin"]), tokenId: null, maxInstances: null };
    return (await this.#options.hub.resolve(`${name}@${version}`, admin)).config;
  }
}

/**
 * The container that is meant if none is named: that of commands and files, except for a port on which the environment itself listens.
 * Null: its code may open a sandbox for the task, which is known when the link is used.
 */
export function containerOf(
  { taskSandboxes }: Pick<InstanceRow, "taskSandboxes">,
  config: EnvironmentConfig,
  port: number,
): Container | null {
  if (taskSandboxes === undefined || listedPorts(config).includes(port)) return "main";
  return taskSandboxes.hasSecond ? "second" : null;
}

/** Why no link to this port can be made; null if one can. */
export function portProblem(
  config: EnvironmentConfig,
  port: number,
  { can }: Pick<SandboxEngine, "can">,
  container: Container | null = "main",
): string | null {
  if (!can.ports) return "this server cannot tell which process listens on a port";
  // The sandbox of a task belongs to one instance and has a network of its own.
  if (container !== "main") return null;
  if (isolationOf(config) === "shared") {
    return 'instances of this environment share a process, so a port is not one instance\'s own; set deployConfig.isolation to "instance"';
  }
  // Sandboxes without their own network share the machine's ports: only ports listed by the publisher are allowed.
  if (can.isolates || listedPorts(config).includes(port)) return null;
  return `the environment's config.json does not list port ${port}; add it to deployConfig.ports and publish a new version`;
}

const NO_SECOND = "the instance has no second container, and its code opens no sandbox for its task";

function listedPorts({ deployConfig }: EnvironmentConfig): readonly unknown[] {
  const { port, ports, service } = deployConfig ?? {};
  return [port, service?.port, ...(Array.isArray(ports) ? ports : [])];
}
