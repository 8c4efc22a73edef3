import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { PlatformError, type Role, roles } from "@aenv/contract";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";
import type { Caller } from "./caller.ts";
import { parseScopes } from "./scopes.ts";

/** A stored token: only its hash, never the token. */
export interface TokenRow {
  readonly id: string;
  readonly hash: string;
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly note: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
  /** The limit of this token; null for the server's limit. */
  readonly maxInstances: number | null;
  readonly scopes: readonly string[];
}

export interface NewToken {
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly note?: string;
  readonly expiresAt?: Date;
  readonly maxInstances?: number;
  readonly scopes?: readonly string[];
}

export interface TokensOptions {
  readonly monotonicMs?: () => number;
  /** Tells the other processes of this server. */
  readonly onRevoked?: () => Promise<void>;
}

export function tokenRows(store: Store): Collection<TokenRow> {
  return new Collection<TokenRow>(store, "token", () => ({}));
}

/** How long a verification is cached: a revoked token works for at most this much longer on other servers. */
const CACHE_MS = 2_000;
const MAX_CACHED = 10_000;
/** The time of last use is stored to the minute, which avoids a write per request. */
const RECORD_USE_EVERY_MS = 60_000;
const OWNER = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$/;

/** Tokens `aenv_<id>_<secret>`: 160 random bits, so a plain hash is enough to keep them safe at rest. */
export class Tokens {
  readonly #rows: Collection<TokenRow>;
  readonly #now: () => Date;
  /** Measures the cache time: setting the system clock back must not prolong it. */
  readonly #monotonicMs: () => number;
  readonly #verified = new Map<string, { readonly caller: Caller; readonly expiresAt: string | null; readonly untilMs: number }>();
  /** Tokens that were found valid by their id. */
  readonly #valid = new Map<string, { readonly expiresAt: string | null; readonly untilMs: number }>();
  /** Incremented by revocations, to detect that a row was read before one. */
  #revocations = 0;
  readonly #onRevoked: () => Promise<void>;

  /** A revocation waits for `onRevoked`. */
  constructor(
    rows: Collection<TokenRow>,
    now: () => Date,
    { monotonicMs = () => performance.now(), onRevoked = async () => {} }: TokensOptions = {},
  ) {
    this.#rows = rows;
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#onRevoked = onRevoked;
  }

  /** Only this result contains the token; it cannot be read again. */
  async create(spec: NewToken): Promise<{ token: string; row: TokenRow }> {
    const id = randomBytes(6).toString("hex");
    const secret = randomBytes(20).toString("base64url");
    const row = this.#newRow(id, secret, spec);
    await this.#rows.insert(id, row);
    return { token: `aenv_${id}_${secret}`, row };
  }

  /** Accepts a token that the operator has chosen. Nothing changes if it is accepted already. Returns its id. */
  async accept(token: string, spec: NewToken): Promise<string> {
    const parts = partsOf(token);
    if (parts === null)
      throw new PlatformError(
        "request.invalid",
        "the token is not aenv_ID_SECRET with 12 hexadecimal digits and 27 letters, digits, '-' or '_'",
      );
    await this.#rows.insert(parts.id, this.#newRow(parts.id, parts.secret, spec));
    const known = await this.#find(parts.id);
    if (known === null || !isSame(known.hash, hashOf(parts.secret)))
      throw new PlatformError("request.invalid", `there is another token with the id ${parts.id}; choose a token with another id`);
    return parts.id;
  }

  #newRow(id: string, secret: string, spec: NewToken): TokenRow {
    if (!OWNER.test(spec.owner))
      throw new PlatformError(
        "request.invalid",
        `owner is '${spec.owner}'; use 1 to 64 letters, digits, '_', '.', '@' and '-', and begin with a letter or digit`,
      );
    const unknown = spec.roles.find((role) => !roles.includes(role));
    if (unknown !== undefined || spec.roles.length === 0) {
      throw new PlatformError("request.invalid", `roles are '${spec.roles.join(",")}'; give one or more of ${roles.join(", ")}`);
    }
    if (spec.expiresAt !== undefined && Number.isNaN(spec.expiresAt.getTime()))
      throw new PlatformError("request.invalid", "expiresAt is not a date; write it as 2030-01-31T00:00:00Z");
    return {
      id,
      hash: hashOf(secret),
      owner: spec.owner,
      roles: spec.roles,
      note: spec.note ?? "",
      createdAt: this.#now().toISOString(),
      expiresAt: spec.expiresAt?.toISOString() ?? null,
      lastUsedAt: null,
      maxInstances: spec.maxInstances ?? null,
      scopes: parseScopes(spec.scopes ?? []),
    };
  }

  /** The caller that the token identifies, or null. */
  async verify(token: string): Promise<Caller | null> {
    const now = this.#now().getTime();
    const known = this.#verified.get(token);
    if (known !== undefined && known.untilMs > this.#monotonicMs() && !hasExpired(known, now)) return known.caller;
    const parts = partsOf(token);
    if (parts === null) return null;
    const { id, secret } = parts;
    const row = await this.#find(id);
    if (row === null || !isSame(row.hash, hashOf(secret)) || hasExpired(row, now)) return null;
    void this.#recordUse(row, now).catch(() => {});
    const { owner, roles: given, maxInstances, scopes, expiresAt } = row;
    const caller: Caller = { owner, roles: new Set(given), tokenId: id, maxInstances, scopes };
    if (this.#verified.size >= MAX_CACHED) this.#verified.clear();
    this.#verified.set(token, { caller, expiresAt, untilMs: this.#monotonicMs() + CACHE_MS });
    return caller;
  }

  /** Whether the token with this id was found valid a moment ago. False means that the store must be read. */
  isKnownValid(id: string): boolean {
    const known = this.#valid.get(id);
    return known !== undefined && known.untilMs > this.#monotonicMs() && !hasExpired(known, this.#now().getTime());
  }

  /** Whether the token with this id exists and has not expired. */
  async isValid(id: string): Promise<boolean> {
    if (this.isKnownValid(id)) return true;
    const row = await this.#find(id);
    if (row === null || hasExpired(row, this.#now().getTime())) return false;
    if (this.#valid.size >= MAX_CACHED) this.#valid.clear();
    this.#valid.set(id, { expiresAt: row.expiresAt, untilMs: this.#monotonicMs() + CACHE_MS });
    return true;
  }

  /** Whether the owner has a valid token of an administrator. */
  async isAdministrator(owner: string): Promise<boolean> {
    const now = this.#now().getTime();
    return (await this.list(owner)).some((row) => row.roles.includes("admin") && !hasExpired(row, now));
  }

  async list(owner?: string): Promise<TokenRow[]> {
    const found: TokenRow[] = [];
    for await (const { value } of this.#rows.each()) if (owner === undefined || value.owner === owner) found.push(value);
    return found.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
  }

  /** False if there was no such token. */
  async revoke(id: string): Promise<boolean> {
    this.forgetVerified();
    const wasThere = await this.#rows.remove(id);
    // Again: a verification that read the row before its removal may have been cached in between.
    this.forgetVerified();
    await this.#onRevoked();
    return wasThere;
  }

  /** Every token is read from the store again. */
  forgetVerified(): void {
    this.#revocations++;
    this.#verified.clear();
    this.#valid.clear();
  }

  /** The row, read again if a revocation happened during the read. */
  async #find(id: string): Promise<TokenRow | null> {
    for (;;) {
      const revocations = this.#revocations;
      const row = await this.#rows.find(id);
      if (revocations === this.#revocations) return row?.value ?? null;
    }
  }

  async #recordUse(row: TokenRow, now: number): Promise<void> {
    if (row.lastUsedAt !== null && now - Date.parse(row.lastUsedAt) < RECORD_USE_EVERY_MS) return;
    await this.#rows.update(row.id, (latest) => ({ ...latest, lastUsedAt: new Date(now).toISOString() }));
  }
}

function partsOf(token: string): { id: string; secret: string } | null {
  const [, id, secret] = /^aenv_([0-9a-f]{12})_([\w-]{27})$/.exec(token) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

function hasExpired({ expiresAt }: Pick<TokenRow, "expiresAt">, now: number): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= now;
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
