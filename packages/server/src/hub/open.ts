import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import type { Store } from "../stores/store.ts";
import { BlobStore } from "./archives/blobs.ts";
import { Bundles } from "./bundles/bundles.ts";
import { Hub, type HubOptions } from "./hub.ts";

export interface OpenHubOptions extends Omit<HubOptions, "blobs" | "bundles"> {
  /** The parent of `blobs/` and `bundles/`. */
  readonly home: string;
  readonly store: Store;
  readonly lifecycle: Lifecycle;
  readonly quotas: { blobLimit(owner: string): number };
  /** The largest upload. */
  readonly maxUploadBytes?: number;
}

/** Opens a hub that keeps its archives in a folder. */
export function openHub({ home, quotas, lifecycle, maxUploadBytes, ...rest }: OpenHubOptions): Hub {
  const blobs = new BlobStore({
    home,
    store: rest.store,
    quotaOf: (owner) => quotas.blobLimit(owner),
    now: rest.now,
    ...(maxUploadBytes !== undefined && { maxBytes: maxUploadBytes }),
  });
  const hub = new Hub({ ...rest, blobs, bundles: new Bundles({ home, blobs }) });
  lifecycle.addSweep(() => hub.collect());
  return hub;
}
