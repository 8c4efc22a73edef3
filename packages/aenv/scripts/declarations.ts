import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const inner = ["@aenv/contract", "@aenv/kit", "@aenv/sdk", "@aenv/sdk/adapters", "@aenv/rollout"];

/** Writes the types of all rooms below `out`, with every import of an inner package turned into a relative one. */
export function writeDeclarations(root: string, out: string): void {
  // In the repository, so that `extends` is resolved.
  const folder = mkdtempSync(join(root, "node_modules/.declarations-"));
  try {
    const project = join(folder, "tsconfig.json");
    const files = ["index", "kit", "sdk", "adapters", "rollout"].map((name) => join(root, `packages/aenv/src/${name}.ts`));
    const compilerOptions = {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: join(root, "packages"),
      outDir: out,
      // TypeScript writes no declarations for files that it finds through node_modules, so the inner packages are found by `paths`.
      paths: Object.fromEntries(inner.map((name) => [name, [join(root, sourceOf(name))]])),
    };
    writeFileSync(project, JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files, include: [], exclude: [] }));
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", project], { stdio: "inherit" });
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const entry of readdirSync(out, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    writeFileSync(file, relink(readFileSync(file, "utf8"), dirname(file), out));
  }
}

/** `@aenv/kit` becomes `../../kit/src/index.js`, and `./x.ts` becomes `./x.js`. */
function relink(text: string, folder: string, out: string): string {
  return text.replace(/(from |import\()"([^"]+)"/g, (whole, before: string, specifier: string) => {
    if (specifier.startsWith(".")) return `${before}"${specifier.replace(/\.ts$/, ".js")}"`;
    if (!inner.includes(specifier)) return whole;
    const file = sourceOf(specifier)
      .replace(/^packages/, out)
      .replace(/\.ts$/, ".js");
    return `${before}"${relative(folder, file)}"`;
  });
}

/** `packages/sdk/src/adapters/index.ts` for `@aenv/sdk/adapters`. */
function sourceOf(name: string): string {
  const [, room, ...rest] = name.split("/");
  return ["packages", room, "src", ...rest, "index.ts"].join("/");
}
