import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly version: string;
  readonly description?: string;
  readonly license?: string;
  readonly engines?: { readonly node: string };
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The rooms that become part of the package. */
const inner = ["contract", "kit", "sdk", "rollout", "sandbox", "server", "trainer", "aenv"];
const frameworks = ["@langchain/core", "@mastra/core", "@openai/agents", "ai"];

/** The package.json that is published. */
export function publishedManifest(root: string) {
  const read = (path: string): Manifest => JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"));
  const own = read("packages/aenv");
  const tested = read("interop").dependencies ?? {};
  return {
    name: "aenvironment",
    version: own.version,
    description: own.description,
    license: own.license,
    keywords: ["agents", "environment", "mcp", "reinforcement-learning", "rl", "tools"],
    type: "module",
    engines: own.engines,
    bin: own.bin,
    exports: {
      ".": entry("index"),
      "./kit": entry("kit"),
      "./sdk": { types: types("sdk"), browser: "./lib/browser/sdk.js", default: "./lib/sdk.js" },
      "./adapters": entry("adapters"),
      "./rollout": entry("rollout"),
      "./package.json": "./package.json",
    },
    // Modules that are imported have no side effects; only the files that are started have.
    sideEffects: ["./lib/main.js", "./lib/sandbox.js", "./lib/describe.js", "./lib/runner.js"],
    dependencies: union(inner.map((name) => read(`packages/${name}`))),
    peerDependencies: Object.fromEntries(frameworks.map((name) => [name, atLeast(tested[name] as string)])),
    peerDependenciesMeta: Object.fromEntries(frameworks.map((name) => [name, { optional: true }])),
  };
}

function entry(name: string) {
  return { types: types(name), default: `./lib/${name}.js` };
}

function types(name: string): string {
  return `./types/aenv/src/${name}.d.ts`;
}

/** All external dependencies. Throws if two rooms need different versions of one. */
function union(manifests: readonly Manifest[]): Record<string, string> {
  const all = new Map<string, string>();
  for (const { dependencies = {} } of manifests) {
    for (const [name, range] of Object.entries(dependencies)) {
      if (name.startsWith("@aenv/")) continue;
      if ((all.get(name) ?? range) !== range)
        throw new Error(`two rooms need different versions of ${name}: ${all.get(name)} and ${range}`);
      all.set(name, range);
    }
  }
  return Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The major version that the tests run with, or a newer one. */
function atLeast(version: string): string {
  const [major, minor] = version.replace(/^\D*/, "").split(".");
  return major === "0" ? `>=0.${minor}` : `>=${major}`;
}
