import type { ReachedLimit, RefusedConnection, SandboxRuntime } from "../engine/engine.ts";
import type { NetworksOptions } from "../network/networks.ts";
import type { RegistryPolicyOptions } from "../registry/policy.ts";
import type { CapabilityLimit } from "../spec/capabilities.ts";
import type { Base } from "./base-image.ts";

export interface DockerEngineOptions extends RegistryPolicyOptions {
  /** Everything is kept in its subfolder `docker`, except the key of inits. */
  readonly home: string;
  /** The socket of Docker or Podman on this machine. */
  readonly socket?: string;
  /** Runtime of sandboxes whose specification names none; if unset, the daemon's default. */
  readonly runtime?: SandboxRuntime;
  readonly base?: Base;
  /** What sandboxes may ask for; `mapped` by default: if the daemon maps their users, or its runtime is gVisor. */
  readonly capabilityLimit?: CapabilityLimit;
  /** Folders of this machine that every sandbox can read at the same path, if they exist. */
  readonly folders?: readonly string[];
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** Addresses of sandboxes whose outgoing connections are restricted, such as `172.30.0.0/16`. The default is a free network in 10.64.0.0/10. */
  readonly subnet?: string;
  /** The IPv4 addresses of a name that a sandbox looks up; the default asks the name servers of this machine. */
  readonly resolve?: NetworksOptions["resolve"];
  /** Called for outgoing connections that were refused: each destination of a sandbox once a minute, and few of one sandbox. */
  readonly onRefused?: (refused: RefusedConnection) => void;
  /** Called for limits that a sandbox reached while it went on: each once in ten minutes. */
  readonly onLimit?: (reached: ReachedLimit) => void;
  /** Receives the progress of pulls, and what the operator should know. */
  readonly log?: (line: string) => void;
}
