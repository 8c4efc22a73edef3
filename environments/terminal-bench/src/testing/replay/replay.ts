import { readVectors, Tally, textAt } from "@aenv/benchmark/testing";
import { KNOWN_VERSIONS, parseTrajectory } from "../../atif/trajectory.ts";
import { datasetHash } from "../../checksum/dataset-hash.ts";
import { sha256 } from "../../checksum/files.ts";
import { packageContentOf } from "../../checksum/package-hash.ts";
import { treeHash } from "../../checksum/tree-hash.ts";
import { parsePackageReference } from "../../dataset/reference.ts";
import { resolveVersion } from "../../dataset/version.ts";
import { InvalidValue } from "../../fields/field.ts";
import { eligibleKs, passAtK } from "../../metrics/pass-at-k.ts";
import { stripCanary } from "../../task/instruction.ts";
import { isResolved, PARSERS, parseTestLog } from "../../tb1/parsers.ts";
import { MissingHostVariable, resolveTemplate } from "../../templates/template.ts";
import { replayReward } from "./rewards.ts";
import { readTaskToml } from "./task-toml.ts";
import { isVector, listAt, numberAt, textsAt, type Vector, vectorAt } from "./vectors.ts";

/** The kinds of vectors by the keys of a file. */
const kinds: Readonly<Record<string, (file: Vector, tally: Tally) => void>> = {
  reward: each("reward", replayReward),
  env_template: replayTemplates,
  task_toml: each("task_toml", (vector, tally) => {
    const toml = textAt(vector, "toml");
    tally.compare("task_toml", JSON.stringify(toml), readTaskToml(toml), vector.upstream);
  }),
  strip_canary: each("strip_canary", (vector, tally) => {
    const text = textAt(vector, "in");
    tally.compare("strip_canary", JSON.stringify(text), stripCanary(text), vector.out);
  }),
  package_ref: each("package_ref", replayPackageReference),
  resolve_version: each("resolve_version", (vector, tally) => {
    const versions = textsAt(vector, "versions");
    tally.compare("resolve_version", versions.join(" "), resolveVersion(versions), vector.picked);
  }),
  pass_at_k: replayPassAtK,
  hashes: each("hashes", replayHashes),
  dataset_hash: each("dataset_hash", replayDatasetHash),
  tb1_parsers: each("tb1_parsers", replayParser),
  atif: each("atif", replayAtif),
};

/** Compares a file of vectors with this implementation. */
export function replayFile(path: string): Tally {
  const tally = new Tally((value) => JSON.stringify(sorted(value)) ?? "undefined");
  const [file] = readVectors<unknown>(path, JSON.parse);
  if (!isVector(file)) throw new Error("expected an object whose keys are kinds of vectors");
  if (isAtifDocument(file)) replayAtif(file, tally);
  else replayKinds(file, path, tally);
  return tally;
}

/** Values are compared without regard to the order of keys, and numbers that JSON does not have as texts. */
function sorted(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (typeof value === "number" && !Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return entries.map(([key, inner]) => [key, sorted(inner)]);
}

function replayKinds(file: Vector, path: string, tally: Tally): void {
  for (const kind of Object.keys(file)) {
    const replay = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
    if (replay === undefined) tally.compare(kind, path, "an unknown kind of vectors", "a known kind");
    else replay(file, tally);
  }
}

function each(kind: string, replay: (vector: Vector, tally: Tally) => void): (file: Vector, tally: Tally) => void {
  return (file, tally) => {
    forEach(kind, file, kind, tally, (vector) => replay(vector, tally));
  };
}

/** The vectors at a key. One that cannot be compared is a difference; the others are still counted. */
function forEach(kind: string, record: Vector, key: string, tally: Tally, replay: (vector: Vector) => void): void {
  for (const vector of listAt(record, key)) {
    try {
      if (!isVector(vector)) throw new Error("it is not an object");
      replay(vector);
    } catch (error) {
      tally.compare(kind, JSON.stringify(vector), String(error), "a vector that can be compared");
    }
  }
}

function replayTemplates(file: Vector, tally: Tally): void {
  forEach("env_template", file, "env_template", tally, (group) => {
    const host = vectorAt(group, "host") as Readonly<Record<string, string>>;
    forEach("env_template", group, "cases", tally, (vector) => {
      const value = textAt(vector, "value");
      const got = attempt<Vector>(() => ({ result: resolveTemplate(value, host) }), MissingHostVariable, {
        error: "missing host variable",
      });
      tally.compare("env_template", JSON.stringify(value), got, "error" in vector ? { error: vector.error } : { result: vector.result });
    });
  });
}

function replayPackageReference(vector: Vector, tally: Tally): void {
  const text = textAt(vector, "in");
  const got = attempt<unknown>(() => ({ in: text, ...parsePackageReference(text) }), InvalidValue, { in: text, error: true });
  tally.compare("package_ref", text, got, vector);
}

function replayPassAtK(file: Vector, tally: Tally): void {
  forEach("pass_at_k", file, "pass_at_k", tally, (group) => {
    for (const [m, ks] of Object.entries(vectorAt(group, "eligible_k"))) tally.compare("pass_at_k", `m = ${m}`, eligibleKs(Number(m)), ks);
    forEach("pass_at_k", group, "estimator", tally, (vector) => {
      const [n, c, k] = [numberAt(vector, "n"), numberAt(vector, "c"), numberAt(vector, "k")];
      tally.compare("pass_at_k", `n ${n}, c ${c}, k ${k}`, passAtK(n, c, k), vector.value);
    });
  });
}

function replayHashes(vector: Vector, tally: Tally): void {
  const contents = Object.entries(vectorAt(vector, "files")).map(([path, content]) => ({ path, content: String(content) }));
  const files = contents.map(({ path, content }) => ({ path, sha256: sha256(content) }));
  const where = contents.map(({ path }) => path).join(" ");
  const content = packageContentOf(files, contents.find(({ path }) => path === ".gitignore")?.content ?? null);
  if ("dirhash_sha256" in vector) tally.compare("hashes", `tree of ${where}`, treeHash(files), vector.dirhash_sha256);
  if ("package_content_hash" in vector) tally.compare("hashes", `package of ${where}`, content.hash, vector.package_content_hash);
  if ("package_files" in vector) tally.compare("hashes", `files of ${where}`, content.files, vector.package_files);
}

function replayDatasetHash(vector: Vector, tally: Tally): void {
  const files = (Array.isArray(vector.files) ? vector.files : []).map(([path, digest]: [string, string]) => ({ path, digest }));
  tally.compare("dataset_hash", JSON.stringify(vector), datasetHash(textsAt(vector, "tasks"), files), vector.hash);
}

function replayParser(vector: Vector, tally: Tally): void {
  const parser = PARSERS.find((name) => name === vector.parser);
  if (parser === undefined) throw new Error(`there is no parser '${String(vector.parser)}'`);
  const log = textAt(vector, "log");
  const results = parseTestLog(parser, log);
  const got =
    results === null
      ? { error: "parse_error" }
      : { results: Object.fromEntries(results), is_resolved: results.size === 0 || isResolved(results) };
  const { parser: _, log: __, ...wanted } = vector;
  tally.compare("tb1_parsers", `${parser} ${JSON.stringify(log)}`, got, wanted);
}

/** A case, or a document itself, which is valid then. */
function replayAtif(vector: Vector, tally: Tally): void {
  if (isAtifDocument(vector)) tally.compare("atif", String(vector.session_id), isTrajectory(vector), true);
  else tally.compare("atif", String(vector.case), isTrajectory(vector.doc), vector.valid);
}

function isAtifDocument({ schema_version: version }: Vector): boolean {
  return typeof version === "string" && version.startsWith("ATIF-");
}

/** The recorded reference does not know the latest version. */
function isTrajectory(document: unknown): boolean {
  return attempt(() => parseTrajectory(document, KNOWN_VERSIONS.slice(0, -1)) !== null, InvalidValue, false);
}

/** The result, or the fallback if it throws an error of the given class. */
function attempt<T>(run: () => T, type: abstract new (...args: never[]) => Error, fallback: T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof type) return fallback;
    throw error;
  }
}
