import type { Role } from "@aenv/contract";

/** The owner of a request and its rights. */
export interface Caller {
  readonly owner: string;
  readonly roles: ReadonlySet<Role>;
  /** Null if access is off. */
  readonly tokenId: string | null;
  /** The token's own limit on live instances, if it has one. */
  readonly maxInstances: number | null;
  /** The environments that the token is valid for; all if empty. */
  readonly scopes?: readonly string[];
}
