/** Where in the author's files something was defined, so that errors can point there. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const places = new WeakMap<object, Place>();

/** Notes the line that called `caller`, and gives the definition back. */
// biome-ignore lint/complexity/noBannedTypes: captureStackTrace takes any function
export function rememberPlace<T extends object>(definition: T, caller: Function): T {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, caller);
  const place = firstPlace(trace.stack ?? "");
  if (place !== null) places.set(definition, place);
  return definition;
}

export function placeOf(definition: object): Place | null {
  return places.get(definition) ?? null;
}

/** The first `file:line:column` of a stack or an error text. */
export function firstPlace(stack: string): Place | null {
  const match = /(?:file:\/\/)?(\/[^\s():?]+|[A-Za-z]:[\\/][^\s():?]+)(?:\?[^\s():]*)?:(\d+)(?::(\d+))?/.exec(stack);
  if (match === null) return null;
  return { file: decodeURI(match[1] as string), line: Number(match[2]), column: Number(match[3] ?? 1) };
}
