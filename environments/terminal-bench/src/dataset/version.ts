import { compareText } from "@aenv/benchmark";
import { compareVersions, parseVersion } from "../python/version.ts";

/** The version that a name without one means: `head`, else the highest one, else the last one by name. */
export function resolveVersion(versions: readonly string[]): string {
  if (versions.includes("head")) return "head";
  const parsed = versions.flatMap((text) => {
    const version = parseVersion(text);
    return version === null ? [] : [{ text, version }];
  });
  const [first, ...others] = parsed;
  if (first !== undefined) return others.reduce((best, one) => (compareVersions(one.version, best.version) > 0 ? one : best), first).text;
  const last = [...versions].sort(compareText).at(-1);
  if (last === undefined) throw new Error("the dataset has no versions");
  return last;
}
