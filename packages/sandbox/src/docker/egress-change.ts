import { type EgressPolicy, PlatformError } from "@aenv/contract";
import { isDockerError } from "./api.ts";
import { assertEgress, egressProblem } from "./checks.ts";
import type { DockerNetworks } from "./networks.ts";
import type { DockerRecord } from "./record.ts";

/** A container that runs, whose policy changes. */
export interface EgressChange {
  readonly record: DockerRecord;
  readonly container: string;
  readonly networks: DockerNetworks;
  readonly isPodman: boolean;
  /** Written before the network is used: what the record does not name would not be removed. */
  readonly write: (egress: DockerRecord["egress"]) => void;
  /** Removes the open network, if no record names it. */
  readonly removeUnused: () => Promise<void>;
}

/** Connects the container to the open network, or disconnects it. */
export async function changeEgress(change: EgressChange, policy: EgressPolicy): Promise<void> {
  const { record, container, networks, isPodman, write, removeUnused } = change;
  assertEgress(record.id, policy);
  const wanted = policy === "open" ? "open" : "none";
  if (record.egress === wanted) return;
  // Whether Podman can depends on how the container was created, so it is asked.
  const problem = egressProblem([record.egress, wanted], { runtime: record.runtime, isPodman: false });
  if (problem !== null) throw unsupported(record, problem);
  if (wanted === "open") write(wanted);
  if (wanted === "open") await networks.createOpen();
  const [from, to] = wanted === "open" ? ["none", networks.open] : [networks.open, "none"];
  // A container in a private network is not in the network `none`, which Podman does not have.
  const usesNone = (record.networks ?? []).length === 0 && !isPodman;
  if (usesNone || from === networks.open) await networks.disconnect(from, container);
  if (usesNone || to === networks.open)
    await networks.connect(to, container).catch(async (error: unknown) => {
      if (!isDockerError(error) || !error.message.includes("invalid network mode")) throw error;
      write("none");
      await removeUnused();
      throw unsupported(record, egressProblem(["none", "open"], { runtime: "runc", isPodman: true }));
    });
  if (wanted === "open") return networks.separate();
  write(wanted);
  await removeUnused();
}

function unsupported({ id }: DockerRecord, why: string | null): PlatformError {
  return new PlatformError("sandbox.unsupported", `sandbox '${id}': ${why}`);
}
