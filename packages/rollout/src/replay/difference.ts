import { isObject } from "@aenv/contract";

/** One place where two JSON values differ; undefined stands for what one of them lacks. */
export interface Difference {
  /** As in `result.content[0].text`; empty for the whole value. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** The places where two JSON values differ, in order, at most so many. */
export function differences(expected: unknown, actual: unknown, most = 20): Difference[] {
  const found: Difference[] = [];
  collect(expected, actual, "", found, most);
  return found;
}

function collect(expected: unknown, actual: unknown, path: string, found: Difference[], most: number): void {
  if (found.length >= most || Object.is(expected, actual)) return;
  if (Array.isArray(expected) && Array.isArray(actual)) {
    for (let at = 0; at < Math.max(expected.length, actual.length); at++) collect(expected[at], actual[at], `${path}[${at}]`, found, most);
  } else if (isObject(expected) && isObject(actual)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      collect(own(expected, key), own(actual, key), path === "" ? key : `${path}.${key}`, found, most);
    }
  } else {
    found.push({ path, expected, actual });
  }
}

/** A field of the value itself; `__proto__` and others are found in every object otherwise. */
function own(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
