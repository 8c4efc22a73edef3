import { createHash } from "node:crypto";
import { findPrompt, promptNames } from "../prompts/prompts.ts";
import { type Checkout, openCheckout } from "./checkout/checkout.ts";
import { readHashes, replaceDirectory } from "./directory.ts";
import { type DomainLayout, domainLayouts, unplayableDomains } from "./domains.ts";
import { knownHashes, knownRevision } from "./known-hashes.ts";
import { readPrompts } from "./prompts.ts";
import { Project, type Scope } from "./python/project.ts";
import { type Requestor, readToolkit, type ToolSchema } from "./schemas/tools.ts";

export interface PrepareOptions {
  /** A checkout of the benchmark, the folder of its data alone, a .tar.gz archive of a checkout, or the URL of one. */
  from: string;
  /** The data directory. Other domains in it are kept; a directory with other contents is refused. */
  to: string;
  /** The domains to prepare; if not given, all of the checkout that the environment can play. */
  domains?: readonly string[];
  /** Expected sha256 by path in the data directory, such as `airline/db.json`. */
  hashes?: Readonly<Record<string, string>>;
  /** Refuse data that differs from the known revision. */
  isStrict?: boolean;
  fetch?: typeof fetch;
}

export interface Prepared {
  to: string;
  domains: string[];
  /** Number of tools by domain. */
  tools: Record<string, number>;
  prompts: string[];
  /** Prompts for which the environment uses its defaults, because the checkout has none. */
  ownPrompts: string[];
  /** sha256 by path in the data directory, as in `hashes.json`. */
  hashes: Record<string, string>;
  /** The revision that the environment was tested with. */
  knownRevision: string;
  /** Files that differ from that revision. */
  differing: string[];
  /** Files of that revision that the checkout does not have. */
  absent: string[];
  /** Tools for which the environment uses its own schema, because the reader does not support theirs. */
  unread: { domain: string; name: string; reason: string }[];
}

const DATA = "data/tau2";
/** The environment has no voice conversations. */
const VOICE_FILES = /(^|\/)(tasks_voice\.json|audio_difficulty\.json)$/;

/** Turns a checkout of the benchmark into a data directory. Nothing is written if a file is missing or not as expected. */
export async function prepareData(options: PrepareOptions): Promise<Prepared> {
  const { from, to } = options;
  // Checked first, so that an unusable directory is reported before a download.
  const before = readHashes(to);
  const checkout = await openCheckout(from, options.fetch);
  const domains = chooseDomains(checkout, options.domains);
  const data = collectData(checkout, domains);
  const hashes = Object.fromEntries([...data].map(([path, bytes]) => [path, createHash("sha256").update(bytes).digest("hex")]));
  const { differing, absent } = compareWithKnown(hashes, domains);
  verifyHashes(hashes, options.hashes ?? {}, from);
  if (options.isStrict) requireKnownRevision(differing, absent, from);

  const project = new Project(checkout);
  const schemas = new Map(domains.map((domain) => [domain, readDomain(domain, checkout, project)]));
  const prompts = readPrompts(checkout, project);
  const texts = new Map(Object.entries(prompts));
  // The user prompts are files, which are required.
  const ownPrompts = promptNames.filter((name) => !name.startsWith("user") && findPrompt(texts, name) === null);

  const files = new Map<string, string | Buffer>(data);
  const others = Object.entries(before).filter(([path]) => !data.has(path) && !domains.some((domain) => path.startsWith(`${domain}/`)));
  files.set("hashes.json", asJson({ ...Object.fromEntries(others), ...hashes }));
  files.set("prompts.json", asJson(prompts));
  for (const [domain, { tools }] of schemas) files.set(`schemas/${domain}.json`, asJson(tools));
  replaceDirectory(to, files, domains);
  return {
    to,
    domains,
    tools: Object.fromEntries([...schemas].map(([domain, { tools }]) => [domain, tools.length])),
    prompts: Object.keys(prompts),
    ownPrompts,
    hashes,
    knownRevision,
    differing,
    absent,
    unread: [...schemas].flatMap(([domain, { unread }]) => unread.map((one) => ({ domain, ...one }))),
  };
}

function chooseDomains(checkout: Checkout, wanted: readonly string[] | undefined): string[] {
  const known = Object.keys(domainLayouts);
  const unknown = wanted?.filter((domain) => !known.includes(domain)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no domain ${unknown.join(", ")}; the domains are ${known.join(", ")}`);
  const present = known.filter((domain) => checkout.has(`${DATA}/domains/${domain}`));
  if (present.length === 0) {
    throw new Error(
      `${checkout.from} is neither a checkout of the benchmark, with ${DATA}/domains, nor a folder of its data, with user_simulator: it has none of ${known.join(", ")}`,
    );
  }
  const playable = present.filter((domain) => !unplayableDomains.includes(domain));
  if (!wanted && playable.length === 0)
    throw new Error(`${checkout.from} has only domains that cannot be played yet: ${present.join(", ")}`);
  const missing = wanted?.filter((domain) => !present.includes(domain)) ?? [];
  if (missing.length > 0) throw new Error(`${checkout.from} has no data of ${missing.join(", ")} (${DATA}/domains/${missing[0]})`);
  return wanted ? [...wanted] : playable;
}

function collectData(checkout: Checkout, domains: readonly string[]): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const add = (folder: string, as: string): void => {
    for (const path of checkout.list(folder))
      if (!VOICE_FILES.test(path)) data.set(`${as}${path.slice(folder.length)}`, checkout.bytes(path));
  };
  if (checkout.has("LICENSE")) data.set("LICENSE", checkout.bytes("LICENSE"));
  for (const domain of domains) add(`${DATA}/domains/${domain}`, domain);
  add(`${DATA}/user_simulator`, "user_simulator");

  const needed = domains.flatMap((domain) => layoutOf(domain).files.map((file) => `${domain}/${file}`));
  const missing = needed.filter((path) => !data.has(path)).map((path) => `${DATA}/domains/${path}`);
  const guidelines = ["simulation_guidelines.md", "simulation_guidelines_tools.md"].map((file) => `user_simulator/${file}`);
  missing.push(...guidelines.filter((path) => !data.has(path)).map((path) => `${DATA}/${path}`));
  if (missing.length > 0) throw new Error(`${checkout.from} lacks ${missing.join(", ")}; use a complete checkout of the benchmark`);
  return data;
}

function verifyHashes(found: Record<string, string>, expected: Readonly<Record<string, string>>, from: string): void {
  const wrong = Object.entries(expected).flatMap(([path, hash]) => {
    if (found[path] === undefined) return [`${path} is missing`];
    return found[path] === hash.toLowerCase() ? [] : [`${path} has sha256 ${found[path]}, expected ${hash}`];
  });
  if (wrong.length > 0) throw new Error(`${from} is not the expected revision of the benchmark: ${wrong.join("; ")}`);
}

function requireKnownRevision(differing: readonly string[], absent: readonly string[], from: string): void {
  const other = [...differing, ...absent.map((path) => `${path} (missing)`)];
  if (other.length > 0)
    throw new Error(`${from} is not revision ${knownRevision} of the benchmark; these files differ: ${other.join(", ")}`);
}

function compareWithKnown(found: Record<string, string>, domains: readonly string[]): Pick<Prepared, "differing" | "absent"> {
  const folders = [...domains, "user_simulator"];
  const known = Object.keys(knownHashes).filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
  return {
    differing: known.filter((path) => found[path] !== undefined && found[path] !== knownHashes[path]),
    absent: known.filter((path) => found[path] === undefined),
  };
}

function readDomain(
  domain: string,
  checkout: Checkout,
  project: Project,
): { tools: ToolSchema[]; unread: { name: string; reason: string }[] } {
  const layout = layoutOf(domain);
  // The data alone says nothing about tools.
  if (!checkout.has("src/tau2")) return { tools: [], unread: [] };
  const sides: [Requestor, string][] = [["assistant", layout.assistant]];
  if (layout.user !== undefined) sides.push(["user", layout.user]);
  const kits = sides.map(([requestor, name]) => {
    const scope = ["tools", "user_tools"].map((file) => findScope(project, domain, file)).find((found) => found?.module.classes.has(name));
    const toolkit = scope?.module.classes.get(name);
    if (!scope || !toolkit) {
      const folder = `src/tau2/domains/${domain}`;
      throw new Error(`${checkout.from} declares no class ${name} in ${folder}/tools.py or ${folder}/user_tools.py`);
    }
    return readToolkit(toolkit, scope, requestor, project);
  });
  return { tools: kits.flatMap((kit) => kit.tools), unread: kits.flatMap((kit) => kit.unread) };
}

function findScope(project: Project, domain: string, file: string): Scope | null {
  return project.find(`tau2.domains.${domain}.${file}`);
}

function layoutOf(domain: string): DomainLayout {
  const layout = Object.hasOwn(domainLayouts, domain) ? domainLayouts[domain] : undefined;
  if (!layout) throw new Error(`there is no domain ${domain}`);
  return layout;
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
