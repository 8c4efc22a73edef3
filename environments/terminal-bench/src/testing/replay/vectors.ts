/** Typed access to the members of vectors, whose files are not checked otherwise. */
export type Vector = Readonly<Record<string, unknown>>;

export function isVector(value: unknown): value is Vector {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of a list, or one value as a list. */
export function listAt(record: Vector, key: string): readonly unknown[] {
  const value = record[key];
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

export function vectorAt(record: Vector, key: string): Vector {
  const value = record[key];
  return isVector(value) ? value : {};
}

export function textsAt(record: Vector, key: string): readonly string[] {
  const value = record[key];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

export function numberAt(record: Vector, key: string): number {
  const value = record[key];
  if (typeof value !== "number") throw new Error(`a vector has no number '${key}'`);
  return value;
}
