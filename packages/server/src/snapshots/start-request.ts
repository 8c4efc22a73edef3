import { type CreateInstanceRequest, PlatformError, splitRef } from "@aenv/contract";
import { isReady, type ReadySnapshot, type SnapshotRow } from "./row.ts";

/** Checks that a request can be combined with a snapshot. What the snapshot determines must not be given. */
export function startableWith(snapshot: SnapshotRow, request: CreateInstanceRequest): ReadySnapshot {
  const { name, fidelity, environment } = snapshot;
  if (!isReady(snapshot))
    throw new PlatformError("snapshot.not_found", `snapshot '${name}' is still being stored; try again when it is ready`, {
      retryable: true,
    });
  const invalid = (why: string) => new PlatformError("request.invalid", `an instance cannot start from snapshot '${name}': ${why}`);
  const wanted = splitRef(request.envName ?? "");
  const isOther = (wanted.name !== "" && wanted.name !== environment.name) || !["", "latest", environment.version].includes(wanted.version);
  if (isOther) throw invalid(`it is of ${environment.name}@${environment.version}, not of ${request.envName}`);
  for (const field of ["task", "seed"] as const)
    if (request[field] !== undefined) throw invalid(`it determines the ${field}; leave '${field}' out, or reset the instance afterwards`);
  if ((request.arguments ?? []).length > 0) throw invalid("it determines the arguments; leave 'arguments' out");
  const given = Object.keys({ ...request.environment_variables, ...request.secrets });
  if (fidelity === "memory" && given.length > 0)
    throw invalid(`its processes keep the variables that they have; leave ${given.join(", ")} out, or take a snapshot of files`);
  return snapshot;
}

/** Stored processes have loaded the code of the environment. */
export function assertSameCode({ name, fidelity, bundle }: ReadySnapshot, bundleDigest: string | null): void {
  if (fidelity === "memory" && bundle !== (bundleDigest ?? ""))
    throw new PlatformError("snapshot.invalid", `snapshot '${name}' is of other code that was published under the same version`);
}
