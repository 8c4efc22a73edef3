import {
  canonicalJson,
  type EnvironmentConfig,
  type EnvironmentStatus,
  environmentStatuses,
  isObject,
  nameProblem,
  PlatformError,
  parseConfig,
  parseName,
  splitRef,
  type Visibility,
  visibilities,
} from "@aenv/contract";
import { digestOf, parseDigest } from "../archives/digest.ts";
import type { Artifact, Content } from "../versions/environment-version.ts";

/** A validated request to publish. Null means not specified. */
export interface Publication extends Pick<Content, "name" | "version" | "config" | "artifacts" | "dependencies" | "bundleDigest"> {
  readonly status: EnvironmentStatus | null;
  readonly visibility: Visibility | null;
  readonly sharedWith: readonly string[] | null;
}

const VERSION = /^[A-Za-z0-9][A-Za-z0-9._+-]*$/;
const MAX_VERSION = 128;
const MAX_DEPENDENCIES = 1_000;
const MAX_SHARED_WITH = 200;
const MAX_OWNER = 64;
const MAX_ARTIFACTS = 100;
const MAX_ARTIFACT_FIELD = 4_096;
const MAX_CONFIG_BYTES = 2 ** 20;
const MAX_DESCRIPTION = 10_000;
const MAX_TAGS = 100;

/** Parses what the original's clients send, a config.json, and additional fields. A null field counts as absent. */
export function parsePublication(value: unknown): Publication {
  if (!isObject(value))
    throw new PlatformError("request.invalid", "Invalid request format: the body must be an object, such as a config.json");
  const given = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null && field !== undefined));
  const { status, visibility, sharedWith, dependencies, artifacts, ...rest } = given;
  const { artifacts: checked = [], ...config } = parseConfig({ ...rest, ...(artifacts !== undefined && { artifacts }) });
  const name = parseName(config.name);
  const version = parseVersion(config.version);
  assertShort(config);
  const dependencyList = parseDependencies(dependencies ?? [], name);
  // As it was sent: an empty list and an absent one have different digests, which must be reproducible.
  const fullConfig = dependencies === undefined ? config : { ...config, dependencies: dependencyList };
  if (canonicalJson(fullConfig).length > MAX_CONFIG_BYTES)
    throw invalid("config.json", "is too large", `at most ${MAX_CONFIG_BYTES} bytes are allowed`);
  const artifactList = parseArtifacts(checked);
  return {
    name,
    version,
    config: fullConfig,
    artifacts: artifactList,
    dependencies: dependencyList,
    bundleDigest: bundleOf(artifactList),
    status: status === undefined || status === "" ? null : parseStatus(status),
    ...parseVisibility(visibility, sharedWith),
  };
}

/** The size of a publication in the store, without its archives. */
export function contentBytesOf({ config, artifacts }: Publication): number {
  return Buffer.byteLength(canonicalJson({ config, artifacts }));
}

/** The digest of everything a version consists of. Publications with the same digest are identical. */
export function contentDigestOf({ config, artifacts }: Publication, sourceDigest: string | null): string {
  return digestOf(canonicalJson({ config, artifacts, sourceDigest }));
}

/** Validates a version for publishing. It becomes part of paths, file names and ranges, and 'latest' is reserved. */
export function parseVersion(version: string): string {
  if (version.length <= MAX_VERSION && VERSION.test(version) && version !== "latest") return version;
  const shown = version.slice(0, MAX_VERSION);
  const rule = `1 to ${MAX_VERSION} letters, digits, '.', '_', '+' and '-', beginning with a letter or digit, and not 'latest'`;
  throw new PlatformError("request.invalid", `invalid environment version: '${shown}' must be ${rule}; such as 1.0.0`, {
    details: { version: shown },
  });
}

/** Case-insensitive, as in the original. */
export function parseStatus(status: unknown): EnvironmentStatus {
  const found = typeof status === "string" && environmentStatuses.find((known) => known.toLowerCase() === status.toLowerCase());
  if (found) return found;
  throw invalid("status", `is ${shown(status)}`, `it must be one of ${environmentStatuses.join(", ")}`);
}

export function parseVisibility(visibility: unknown, sharedWith: unknown): Pick<Publication, "visibility" | "sharedWith"> {
  const known = visibilities.find((one) => one === visibility);
  if (visibility !== undefined && known === undefined) {
    throw invalid("visibility", `is ${shown(visibility)}`, `it must be one of ${visibilities.join(", ")}`);
  }
  if (sharedWith === undefined) return { visibility: known ?? null, sharedWith: null };
  const owners = texts("sharedWith", sharedWith, "owners", MAX_SHARED_WITH, MAX_OWNER);
  return { visibility: known ?? (owners.length > 0 ? "shared" : null), sharedWith: [...new Set(owners)] };
}

/** Every search reads these fields, so their length is limited. */
function assertShort({ description = "", tags = [] }: EnvironmentConfig): void {
  if (description.length > MAX_DESCRIPTION)
    throw invalid("description", "is too long", `at most ${MAX_DESCRIPTION} characters are allowed`);
  if (tags.length > MAX_TAGS || tags.some((tag) => tag.length > MAX_TAGS)) {
    throw invalid("tags", "are too many or too long", `at most ${MAX_TAGS} of at most ${MAX_TAGS} characters are allowed`);
  }
}

function parseDependencies(value: unknown, self: string): string[] {
  const refs = texts("dependencies", value, "environments, such as 'search@^1.2'", MAX_DEPENDENCIES, 300);
  for (const ref of refs) {
    const { name } = splitRef(ref);
    const problem = nameProblem(name);
    if (problem !== null) throw invalid("dependencies", `names ${shown(ref)}`, problem);
    if (name === self) throw invalid("dependencies", `names ${shown(ref)}`, "an environment cannot depend on itself");
  }
  return refs;
}

/** Artifacts refer to what is stored elsewhere, an image or a bundle. They must not hold data. */
function parseArtifacts(given: NonNullable<EnvironmentConfig["artifacts"]>): Artifact[] {
  const artifacts = given.map(({ id = "", type, content }) => ({ id, type, content }));
  const isLong = ({ id, type, content }: Artifact) => Math.max(id.length, type.length, content.length) > MAX_ARTIFACT_FIELD;
  if (artifacts.length <= MAX_ARTIFACTS && !artifacts.some(isLong)) return artifacts;
  const rule = `at most ${MAX_ARTIFACTS} are allowed, and ${MAX_ARTIFACT_FIELD} characters in a field; upload data as a bundle`;
  throw invalid("artifacts", "are too many or too long", rule);
}

function bundleOf(artifacts: readonly Artifact[]): string | null {
  const [bundle, second] = artifacts.filter(({ type }) => type === "bundle");
  if (second !== undefined) throw invalid("artifacts", "holds two bundles", "one version is one bundle");
  return bundle === undefined ? null : parseDigest(bundle.content);
}

function texts(field: string, value: unknown, what: string, maxCount: number, maxLength: number): string[] {
  const isText = (one: unknown) => typeof one === "string" && one.length > 0 && one.length <= maxLength;
  if (Array.isArray(value) && value.length <= maxCount && value.every(isText)) return value;
  throw invalid(field, `is ${shown(value)}`, `it must be a list of at most ${maxCount} ${what}, each of at most ${maxLength} characters`);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

function invalid(field: string, is: string, rule: string): PlatformError {
  return new PlatformError("environment.invalid", `${field} ${is}; ${rule}`, { details: { field } });
}
