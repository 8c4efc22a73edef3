import { type EnvironmentConfig, PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxRuntime } from "@aenv/sandbox";

export interface RuntimePolicyOptions {
  readonly engine: Pick<SandboxEngine, "name" | "can">;
  /** The runtime of sandboxes that need no other. */
  readonly runtime: SandboxRuntime;
  /** Owners whose code may run with runc; empty: all. */
  readonly runcOwners: readonly string[];
}

/** Decides by whose code it is in which runtime a sandbox runs. */
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

  /** Undefined for the runtime that sandboxes have anyway. */
  runtimeOf(owner: string, asked?: NonNullable<EnvironmentConfig["deployConfig"]>["runtime"]): SandboxRuntime | undefined {
    const { engine, runtime, runcOwners } = this.#options;
    if (asked === "runsc" && !engine.can.runtimes.includes("runsc"))
      throw new PlatformError(
        "instance.unsupported",
        `deployConfig.runtime is "runsc", which the engine '${engine.name}' of this server does not have`,
      );
    if (engine.can.runtimes.length === 0) return undefined;
    const isTrusted = runcOwners.length === 0 || runcOwners.includes(owner);
    const chosen = isTrusted ? (asked ?? runtime) : "runsc";
    return chosen === runtime ? undefined : chosen;
  }
}
