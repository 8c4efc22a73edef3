/** A number that Python writes as a float: `1.0`, not `1`. */
export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

// Both are part of Node 24; the library of TypeScript does not have them yet.
const { rawJSON } = JSON as JSON & { rawJSON: (text: string) => unknown };

/** JSON as the reference writes it: 4 spaces, and floats with a fraction. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, (_, one) => (one instanceof Float ? rawFloat(one.value) : one), 4);
}

function rawFloat(value: number): unknown {
  if (!Number.isFinite(value)) return null;
  return rawJSON(Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value));
}
