import { isLoopback } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import type { Store } from "../stores/store.ts";
import { Access } from "./access.ts";
import { useAdminToken } from "./admin-token.ts";
import { Delegates } from "./delegates.ts";
import { Quotas } from "./quotas.ts";
import { Tokens, tokenRows } from "./tokens.ts";

export interface OpenAccessOptions {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly now: () => Date;
  /** Called after a token was revoked; the revocation is answered when it resolves. */
  readonly onRevoked: () => Promise<void>;
  readonly onDelegateEnded: (token: string) => void;
}

/** Puts together what decides who may do what, and how much. */
export async function openAccess({ config, store, now, onRevoked, onDelegateEnded }: OpenAccessOptions) {
  const tokens = new Tokens(tokenRows(store), now, { onRevoked });
  const delegates = new Delegates(onDelegateEnded);
  const access = new Access(tokens, config.access === "on" || (config.access === "auto" && !isLoopback(config.host)), delegates);
  if (access.isOn && config.adminToken !== null) await useAdminToken(tokens, config.adminToken);
  const quotas = new Quotas({
    instances: config.maxInstances,
    createsPerSecond: config.createsPerSecond,
    blobBytes: config.blobBytes,
    snapshots: config.maxSnapshots,
    snapshotBytes: config.snapshotBytes,
  });
  return { access, tokens, delegates, quotas };
}
