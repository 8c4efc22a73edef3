import { existsSync } from "node:fs";
import { join } from "node:path";
import type { VersionRow } from "../hub/versions/environment-version.ts";
import { type InstanceRow, isLive } from "../instances/row.ts";
import type { ServiceRow } from "../services/row.ts";
import { isReady, type SnapshotRow } from "../snapshots/row.ts";
import type { DatabaseReader } from "../stores/sqlite/copy.ts";
import type { BackupManifest } from "./format.ts";

/** What a store says that its home contains. */
export interface References {
  readonly contents: BackupManifest["contents"];
  /** Digests of archives, with the versions that need them. */
  readonly archives: ReadonlyMap<string, string>;
  /** Digests of the contents of snapshots, with the snapshots that need them. */
  readonly snapshots: ReadonlyMap<string, string>;
  readonly notIncluded: readonly string[];
}

export function referencesOf(store: DatabaseReader, home: string): References {
  const [archives, snapshots] = [new Map<string, string>(), new Map<string, string>()];
  const contents = { environments: 0, snapshots: 0, services: 0, tokens: 0, rollouts: 0 };
  for (const row of store.values<VersionRow>("environment")) {
    if (row.isRemoved) continue;
    contents.environments++;
    for (const digest of [row.bundleDigest, row.sourceDigest]) if (digest !== null) archives.set(digest, `${row.name}@${row.version}`);
  }
  for (const row of store.values<SnapshotRow>("snapshot")) {
    // The content of one that is being taken is not complete; the server that takes it removes it after a restart.
    if (!isReady(row)) continue;
    contents.snapshots++;
    for (const { digest } of row.parts) snapshots.set(digest, row.name);
  }
  const storages = new Set<string>();
  for (const { storage, owner } of store.values<ServiceRow>("service")) {
    contents.services++;
    if (storage !== null) storages.add(`${owner}/${storage}`);
  }
  for (const _ of store.values("token")) contents.tokens++;
  for (const _ of store.values("rollout")) contents.rollouts++;
  let live = 0;
  for (const row of store.values<InstanceRow>("instance")) if (isLive(row)) live++;
  const notIncluded = [
    ...(live > 0 ? [`the sandboxes of live instances (${live}), which are Failed after a restore`] : []),
    ...(storages.size > 0 ? [`the persistent folders of services, ${join(home, "storage")}: ${[...storages].sort().join(", ")}`] : []),
    ...["data", "images", "oci"]
      .filter((name) => existsSync(join(home, name)))
      .map((name) => `${join(home, name)}: images and benchmark data are loaded again`),
  ];
  return { contents, archives, snapshots, notIncluded };
}
