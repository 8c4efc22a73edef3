import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxRuntime } from "@aenv/sandbox";

export interface PossibleEgressOptions {
  readonly engine: Pick<SandboxEngine, "egress">;
  /** That of the sandbox; undefined for the engine's own. */
  readonly runtime: () => SandboxRuntime | undefined;
}

/** Throws if a sandbox cannot have the policies of this field of `deployConfig`, one after the other from its start on. */
export function assertPossibleEgress(
  ref: string,
  field: string,
  policies: readonly EgressPolicy[],
  { engine, runtime }: PossibleEgressOptions,
): void {
  const problem = engine.egress?.problem?.(policies, runtime()) ?? null;
  if (problem !== null) throw new PlatformError("instance.unsupported", `deployConfig.${field} of ${ref} cannot be applied: ${problem}`);
}
