import { strip } from "@aenv/benchmark";

const PATTERN =
  /^v?(?:(?<epoch>\d+)!)?(?<release>\d+(?:\.\d+)*)(?:[-_.]?(?<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?<preNumber>\d*))?(?<post>-(?<implicit>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?<postNumber>\d*))?(?<dev>[-_.]?dev[-_.]?(?<devNumber>\d*))?(?:\+(?<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/i;

const PRE: Readonly<Record<string, string>> = { a: "a", alpha: "a", b: "b", beta: "b", c: "rc", rc: "rc", pre: "rc", preview: "rc" };

interface Version {
  readonly epoch: number;
  readonly release: readonly number[];
  /** Order of the stage: a development release, a, b, rc, final. */
  readonly stage: number;
  readonly preNumber: number;
  readonly post: number;
  readonly dev: number;
  readonly local: readonly (number | string)[];
}

/** Null if the text is not a version. */
export function parseVersion(text: string): Version | null {
  const groups = PATTERN.exec(strip(text))?.groups;
  if (groups === undefined) return null;
  const pre = groups.pre === undefined ? null : (PRE[groups.pre.toLowerCase()] ?? "rc");
  const isPost = groups.post !== undefined;
  const isDev = groups.dev !== undefined;
  return {
    epoch: Number(groups.epoch ?? 0),
    release: (groups.release ?? "0").split(".").map(Number),
    stage: pre !== null ? ["a", "b", "rc"].indexOf(pre) + 1 : isDev && !isPost ? 0 : 4,
    preNumber: Number(groups.preNumber || 0),
    post: isPost ? Number(groups.implicit || groups.postNumber || 0) : -1,
    dev: isDev ? Number(groups.devNumber || 0) : Number.POSITIVE_INFINITY,
    local: (groups.local ?? "")
      .split(/[-_.]/)
      .filter((part) => part !== "")
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part.toLowerCase())),
  };
}

export function compareVersions(a: Version, b: Version): number {
  return (
    a.epoch - b.epoch ||
    compareReleases(a.release, b.release) ||
    a.stage - b.stage ||
    a.preNumber - b.preNumber ||
    a.post - b.post ||
    (a.dev === b.dev ? 0 : a.dev - b.dev) ||
    compareLocals(a.local, b.local)
  );
}

/** Trailing zeros do not count: 1.0 equals 1.0.0. */
function compareReleases(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Numbers come after words, and more parts after fewer. */
function compareLocals(a: Version["local"], b: Version["local"]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [left, right] = [a[i], b[i]];
    if (left === undefined || right === undefined) return left === undefined ? -1 : 1;
    if (typeof left !== typeof right) return typeof left === "number" ? 1 : -1;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
