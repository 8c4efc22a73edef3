import type { SandboxSubject } from "@aenv/sandbox";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { InitialState } from "./initial-state.ts";

/** What a sandbox is used for. `initial`: the instance that has it to itself; null if instances share it. */
export function subjectOf(
  { name, version }: Pick<EnvironmentVersion, "name" | "version">,
  owner: string,
  initial: Pick<InitialState, "id" | "ttl" | "labels"> | null,
): SandboxSubject {
  const environment = { environment: name, version, owner };
  if (initial === null) return environment;
  const { id: instance, ttl, labels } = initial;
  return { ...environment, instance, ...(ttl !== undefined && { ttl }), ...(labels !== undefined && { labels }) };
}
