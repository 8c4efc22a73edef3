/** A value of a document that does not fit the format. */
export class InvalidValue extends Error {
  override readonly name = "InvalidValue";
  /** Where in the document: `environment.cpus`, `steps[0].name`; empty for the document itself. */
  readonly at: string;

  constructor(at: string, message: string) {
    super(at === "" ? message : `${at}: ${message}`);
    this.at = at;
  }
}

/** Collects what is accepted but worth a warning: keys that are ignored. */
export interface Notes {
  readonly ignored: string[];
}

/** Turns a value of a document into a typed one, or throws `InvalidValue`. */
export interface Field<T> {
  readonly parse: (value: unknown, at: string, notes?: Notes) => T;
  /** The value of a missing key. Without it the key is required. */
  readonly absent?: () => T;
}

export type Shape = Readonly<Record<string, Field<unknown>>>;
export type Parsed<S extends Shape> = { readonly [K in keyof S]: S[K] extends Field<infer T> ? T : never };

export function withDefault<T>(field: Field<T>, value: T): Field<T> {
  return { parse: field.parse, absent: () => structuredClone(value) };
}

/** The key may be missing or null. */
export function optional<T>(field: Field<T>): Field<T | null> {
  return { parse: (value, at, notes) => (value === null ? null : field.parse(value, at, notes)), absent: () => null };
}

/** Checks or changes a parsed value. */
export function refine<T, U>(field: Field<T>, change: (value: T, at: string) => U): Field<U> {
  return { parse: (value, at, notes) => change(field.parse(value, at, notes), at) };
}

/** Changes the document before it is parsed. */
export function before<T>(change: (value: unknown, at: string) => unknown, field: Field<T>): Field<T> {
  return { parse: (value, at, notes) => field.parse(change(value, at), at, notes), ...(field.absent && { absent: field.absent }) };
}

/** A value as it is shown in a message. */
export function shown(value: unknown): string {
  const text =
    typeof value === "bigint" ? String(value) : JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner));
  return text === undefined ? String(value) : text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
