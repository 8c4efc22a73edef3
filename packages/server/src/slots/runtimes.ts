import { type EnvironmentConfig, PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxRuntime } from "@aenv/sandbox";

export interface RuntimePolicyOptions {
  readonly engine: Pick<SandboxEngine, "name" | "can">;
  /** The runtime of sandboxes that need no other. */
  readonly runtime: SandboxRuntime;
  /** Owners whose code may run with runc; empty: all if the server's runtime is runc, else none. */
  readonly runcOwners: readonly string[];
}

/** Decides by whose code runs in a sandbox which runtime it has. */
export class RuntimePolicy {
  readonly #options: RuntimePolicyOptions;

  constructor(options: RuntimePolicyOptions) {
    this.#options = options;
    const { engine, runcOwners } = options;
    if (runcOwners.length > 0 && !engine.can.runtimes.includes("runsc"))
      throw new PlatformError(
        "request.invalid",
        `runcOwners is set, but the engine '${engine.name}' does not run sandboxes with runsc; use the engine oci`,
      );
  }

  /**
   * Undefined for the runtime that sandboxes have anyway. `owners` are the publisher of the environment and the owner of the instance, whose
   * commands and `datasource` run there too.
   */
  runtimeOf(owners: readonly string[], asked?: NonNullable<EnvironmentConfig["deployConfig"]>["runtime"]): SandboxRuntime | undefined {
    const { engine, runtime, runcOwners } = this.#options;
    if (asked === "runsc" && !engine.can.runtimes.includes("runsc"))
      throw new PlatformError(
        "instance.unsupported",
        `deployConfig.runtime is "runsc", which the engine '${engine.name}' of this server does not have`,
      );
    if (engine.can.runtimes.length === 0) return undefined;
    const isTrusted = runcOwners.length === 0 ? runtime === "runc" : owners.every((owner) => runcOwners.includes(owner));
    const chosen = isTrusted ? (asked ?? runtime) : "runsc";
    return chosen === runtime ? undefined : chosen;
  }
}
