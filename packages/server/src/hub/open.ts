import type { Store } from "../stores/store.ts";
import { BlobStore } from "./archives/blobs.ts";
import { Bundles } from "./bundles/bundles.ts";
import { Hub, type HubOptions } from "./hub.ts";

export interface OpenHubOptions extends Omit<HubOptions, "blobs" | "bundles"> {
  /** The parent of `blobs/` and `bundles/`. */
  readonly home: string;
  readonly store: Store;
  readonly quotas: { blobLimit(owner: string): number };
  /** The largest upload. */
  readonly maxUploadBytes?: number;
}

/** Opens a hub that keeps its archives in a folder. */
export function openHub({ home, quotas, maxUploadBytes, ...rest }: OpenHubOptions): Hub {
  const blobs = new BlobStore({
    home,
    store: rest.store,
    quotaOf: (owner) => quotas.blobLimit(owner),
    now: rest.now,
    ...(maxUploadBytes !== undefined && { maxBytes: maxUploadBytes }),
  });
  return new Hub({ ...rest, blobs, bundles: new Bundles({ home, blobs }) });
}
