import semver from "semver";

/** What is needed to put versions in order. */
export interface Dated {
  readonly version: string;
  readonly createdAt: string;
}

/** Newest first: by semver; what is no semver comes last, by the time it was published. */
export function byNewest(one: Dated, other: Dated): number {
  const [a, b] = [semver.parse(one.version), semver.parse(other.version)];
  if (a !== null && b !== null) return semver.compareBuild(b, a) || byTime(one, other);
  if (a === null && b === null) return byTime(one, other);
  return a === null ? 1 : -1;
}

function byTime(one: Dated, other: Dated): number {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt ? 1 : -1;
  return one.version < other.version ? 1 : -1;
}

/** The highest stable version; a prerelease only if there is nothing else. Null if there is none at all. */
export function latest<T extends Dated>(versions: readonly T[]): T | null {
  const sorted = [...versions].sort(byNewest);
  return sorted.find((one) => semver.parse(one.version)?.prerelease.length === 0) ?? sorted[0] ?? null;
}

/** The highest version within a range such as `^1.2`; a prerelease only if nothing stable fits. Null if none fits or it is no range. */
export function highestWithin<T extends Dated>(versions: readonly T[], range: string): T | null {
  if (semver.validRange(range) === null) return null;
  const fits = (includePrerelease: boolean) => versions.filter((one) => semver.satisfies(one.version, range, { includePrerelease }));
  const stable = fits(false);
  return latest(stable.length > 0 ? stable : fits(true));
}
