import type { EngineAbilities, SnapshotFidelity } from "../engine/engine.ts";

/** What the programs of sandboxes in memory simulate. */
export type MemoryAbilities = Partial<Omit<EngineAbilities, "ports">> & {
  readonly egress?: boolean;
  readonly reportsRefused?: boolean;
  readonly changesEgress?: boolean;
  readonly snapshots?: readonly SnapshotFidelity[];
};
