import type { RolloutResult } from "@aenv/contract";
import type { Store } from "@aenv/server/trainer-services";
import { Collection } from "@aenv/server/trainer-services";

/** Largest result of a rollout. One that would be larger is unscored. */
export const MAX_RESULT_BYTES = 64 * 1024 ** 2;
/** A field with a longer text is not in the result's first row. */
const LARGE_FIELD = 64 * 1024;
/** Characters in a row with a part of a large field. */
const PART = 256 * 1024;

/** Numbers of the rows with the parts of a large field; `to` is exclusive. */
interface Parts {
  readonly from: number;
  readonly to: number;
}

/** The first row of a result: the JSON text of each field, or where its parts are. */
interface Head {
  readonly fields: Readonly<Record<string, string | Parts>>;
}

/** The JSON texts of a result's fields. */
export interface ResultTexts {
  readonly fields: ReadonlyMap<string, string>;
  readonly bytes: number;
}

/** How many rows a result has beside its first one. */
export interface StoredSize {
  readonly bytes: number;
  /** A result of an earlier version of the server has none. */
  readonly parts?: number;
}

/** A result that is read from the store while it is sent. */
export interface OpenResult {
  /** The result as JSON, with the given fields or all, piece by piece; the next one is read when it is wanted. */
  texts(fields: ReadonlySet<string> | null): AsyncGenerator<string>;
}

/**
 * Results are rows of text: a result is sent as it was stored, without being parsed. Large fields are in rows of their own, which are read
 * one at a time, and only if the client wants the field. So no result is in memory as a whole, however slowly its client reads.
 */
export class StoredResults {
  /** A result of an earlier version of the server is one row. */
  readonly #heads: Collection<Head | RolloutResult>;
  readonly #parts: Collection<string>;

  constructor(store: Store) {
    this.#heads = new Collection(store, "rollout-result", () => ({}));
    this.#parts = new Collection(store, "rollout-result-part", () => ({}));
  }

  async insert(key: string, { fields, bytes }: ResultTexts): Promise<StoredSize> {
    const placed: Record<string, string | Parts> = {};
    let parts = 0;
    try {
      for (const [name, text] of fields) {
        if (text.length <= LARGE_FIELD) placed[name] = text;
        else {
          const from = parts;
          for (const part of partsOf(text)) await this.#parts.insert(partKey(key, parts++), part);
          placed[name] = { from, to: parts };
        }
      }
      await this.#heads.insert(key, { fields: placed });
    } catch (error) {
      await this.remove(key, { bytes, parts }).catch(() => {});
      throw error;
    }
    return { bytes, parts };
  }

  async open(key: string): Promise<OpenResult | null> {
    const head = (await this.#heads.find(key))?.value;
    if (head === undefined) return null;
    const placed = isHead(head) ? head.fields : Object.fromEntries(Object.entries(head).map(([name, one]) => [name, JSON.stringify(one)]));
    return { texts: (fields) => this.#textsOf(key, placed, fields) };
  }

  async remove(key: string, { parts = 0 }: StoredSize): Promise<void> {
    await this.#heads.remove(key);
    for (let at = 0; at < parts; at++) await this.#parts.remove(partKey(key, at));
  }

  async *#textsOf(key: string, placed: Head["fields"], fields: ReadonlySet<string> | null): AsyncGenerator<string> {
    let text = "{";
    let separator = "";
    for (const [name, place] of Object.entries(placed)) {
      if (fields !== null && !fields.has(name)) continue;
      text += `${separator}${JSON.stringify(name)}:`;
      separator = ",";
      if (typeof place === "string") text += place;
      else {
        for (let at = place.from; at < place.to; at++) {
          const part = (await this.#parts.find(partKey(key, at)))?.value;
          if (part === undefined) throw new Error(`the result ${key} was removed while it was sent`);
          yield text + part;
          text = "";
        }
      }
    }
    yield `${text}}`;
  }
}

/** Null if the result is too large. */
export function textsOf(result: RolloutResult): ResultTexts | null {
  const fields = new Map<string, string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(result)) {
    const text = jsonOf(value);
    if (text === undefined) continue;
    bytes += name.length + (text === null ? Number.POSITIVE_INFINITY : Buffer.byteLength(text));
    if (text === null || bytes > MAX_RESULT_BYTES) return null;
    fields.set(name, text);
  }
  return { fields, bytes };
}

/** Null if the text would be longer than a string can be. */
function jsonOf(value: unknown): string | undefined | null {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** A part does not end within a pair of surrogates: each is encoded for itself when it is sent. */
function* partsOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const isPair = (text.charCodeAt(from + PART - 1) & 0xfc00) === 0xd800;
    const to = from + PART - Number(isPair);
    yield text.slice(from, to);
    from = to;
  }
}

function partKey(key: string, at: number): string {
  return `${key}/${at}`;
}

function isHead(value: Head | RolloutResult): value is Head {
  return "fields" in value;
}
