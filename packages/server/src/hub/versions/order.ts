import semver from "semver";

/** The fields by which versions are sorted. */
export interface Dated {
  readonly version: string;
  readonly createdAt: string;
}

/** Newest first, by semver. Versions that are not semver come last, by time of publication. */
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

/** The highest stable version, else the highest prerelease, else null. */
export function latest<T extends Dated>(versions: readonly T[]): T | null {
  const sorted = [...versions].sort(byNewest);
  return sorted.find((one) => semver.parse(one.version)?.prerelease.length === 0) ?? sorted[0] ?? null;
}

/** The highest version in a range such as `^1.2`; a prerelease only if no stable version matches. Null if none matches or the range is invalid. */
export function highestInRange<T extends Dated>(versions: readonly T[], range: string): T | null {
  if (semver.validRange(range) === null) return null;
  const fits = (includePrerelease: boolean) => versions.filter((one) => semver.satisfies(one.version, range, { includePrerelease }));
  const stable = fits(false);
  return latest(stable.length > 0 ? stable : fits(true));
}
