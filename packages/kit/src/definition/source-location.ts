/** Where in the author's files something was defined, so that errors can point there. */
export interface SourceLocation {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const places = new WeakMap<object, SourceLocation>();

/** Notes the line that called `caller`, and gives the definition back. */
// biome-ignore lint/complexity/noBannedTypes: captureStackTrace takes any function
export function rememberLocation<T extends object>(definition: T, caller: Function): T {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, caller);
  const place = firstLocation(trace.stack ?? "");
  if (place !== null) places.set(definition, place);
  return definition;
}

export function locationOf(definition: object): SourceLocation | null {
  return places.get(definition) ?? null;
}

/** The first `file:line:column` of a stack or an error text. */
export function firstLocation(stack: string): SourceLocation | null {
  const match = /(?:file:\/\/)?(\/[^\s():?]+|[A-Za-z]:[\\/][^\s():?]+)(?:\?[^\s():]*)?:(\d+)(?::(\d+))?/.exec(stack);
  if (match === null) return null;
  return { file: decodeURI(match[1] as string), line: Number(match[2]), column: Number(match[3] ?? 1) };
}
