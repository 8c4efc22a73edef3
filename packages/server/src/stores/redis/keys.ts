import { PlatformError } from "@aenv/contract";

export const DEFAULT_PREFIX = "aenv";

/**
 * Every key name. The part in braces determines the cluster node of a key. All keys of a kind share it, so that one script can
 * change a row and its indexes.
 *
 *     {aenv:instance}:row:<key>             hash: v = value as JSON, r = revision, i = its indexes as a JSON list
 *     {aenv:instance}:keys                  sorted set of all keys
 *     {aenv:instance}:index:<name>=<value>  sorted set of the keys of rows with this index value
 *     {aenv:instance}:rev                   the last revision
 *     {aenv:instance}:done:<change>         a receipt: this change was made; expires
 */
export class Keys {
  readonly #prefix: string;

  constructor(prefix = DEFAULT_PREFIX) {
    if (/[{}]/.test(prefix)) throw new PlatformError("store.invalid", `the Redis prefix '${prefix}' contains a brace: choose one without`);
    this.#prefix = prefix;
  }

  of(kind: string): KindKeys {
    return new KindKeys(`{${this.#prefix}:${kind.replace(/[%{}]/g, encodeURIComponent)}}`);
  }
}

export class KindKeys {
  readonly keys: string;
  readonly rev: string;
  /** Prefix of a row's key in scripts. */
  readonly rowBase: string;
  /** Prefix of an index in scripts, before `indexEnd`. */
  readonly indexBase: string;
  readonly #tag: string;

  constructor(tag: string) {
    this.#tag = tag;
    this.keys = `${tag}:keys`;
    this.rev = `${tag}:rev`;
    this.rowBase = `${tag}:row:`;
    this.indexBase = `${tag}:index:`;
  }

  row(key: string): string {
    return this.rowBase + key;
  }

  index(name: string, value: string): string {
    return this.indexBase + indexEnd(name, value);
  }

  done(change: string): string {
    return `${this.#tag}:done:${change}`;
  }
}

export function indexEnd(name: string, value: string): string {
  return `${encodeURIComponent(name)}=${value}`;
}
