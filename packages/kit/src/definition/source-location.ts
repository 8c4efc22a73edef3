/** Where a definition is in the author's files, so that errors can point there. */
export interface SourceLocation {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const locations = new WeakMap<object, SourceLocation>();

/** Stores the line that called `caller` as the location of the definition, and returns the definition. */
// biome-ignore lint/complexity/noBannedTypes: captureStackTrace takes any function
export function rememberLocation<T extends object>(definition: T, caller: Function): T {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, caller);
  const location = firstLocation(trace.stack ?? "");
  if (location !== null) locations.set(definition, location);
  return definition;
}

export function locationOf(definition: object): SourceLocation | null {
  return locations.get(definition) ?? null;
}

/** The first `file:line:column` of a stack or an error text. */
export function firstLocation(stack: string): SourceLocation | null {
  const match = /(?:file:\/\/)?(\/[^\s():?]+|[A-Za-z]:[\\/][^\s():?]+)(?:\?[^\s():]*)?:(\d+)(?::(\d+))?/.exec(stack);
  if (match === null) return null;
  return { file: decodeURI(match[1] as string), line: Number(match[2]), column: Number(match[3] ?? 1) };
}
