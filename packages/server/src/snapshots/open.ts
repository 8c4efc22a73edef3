import { join } from "node:path";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import type { Store } from "../stores/store.ts";
import { SnapshotContent } from "./content.ts";
import { LocalCopies } from "./local-copies.ts";
import { snapshotRows } from "./row.ts";
import { Snapshots, type SnapshotsOptions } from "./snapshots.ts";

export interface OpenSnapshotsOptions extends Omit<SnapshotsOptions, "rows" | "content" | "copies"> {
  readonly store: Store;
  readonly space: SnapshotSpace;
  /** The folder of the hub's archives, which all servers of the store share. */
  readonly blobs: string;
}

/** Long enough for a series of experiments from one snapshot. */
const IDLE_COPY_MS = 30 * 60_000;

export function openSnapshots(options: OpenSnapshotsOptions): Snapshots {
  const { store, blobs, serverId, engine, space, now } = options;
  const rows = snapshotRows(store);
  const referenced = async () => {
    const digests = new Set<string>();
    for await (const { value } of rows.each({ index: "all", value: "yes" })) for (const { digest } of value.parts) digests.add(digest);
    return digests;
  };
  const content = new SnapshotContent({ folder: join(blobs, "snapshots"), serverId, referenced });
  const copies = new LocalCopies({ engine, content, space, idleMs: IDLE_COPY_MS, now: () => now().getTime() });
  return new Snapshots({ ...options, rows, content, copies });
}
