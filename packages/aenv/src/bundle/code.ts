import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, isAbsolute, relative, sep } from "node:path";
import { findEntries } from "@aenv/kit";
import { type BuildFailure, build, type Plugin } from "esbuild";
import { esbuildProblems, missingPackageHint } from "../project/locate-errors.ts";
import type { Project } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";
import type { TarEntry } from "./tar.ts";

/** The bundled module that defines the environment; the bundle's config.json names it as `main`. */
export const ENVIRONMENT_FILE = "environment.js";

/**
 * The environment and everything it imports as a few files of plain JavaScript. `main.js` serves it; dynamic imports
 * become files of their own, which are loaded when they are needed.
 */
export async function bundleCode(project: Project): Promise<TarEntry[]> {
  const { root, config } = project;
  const entries = (await findEntries(root, config)).map((path) => `./${relative(root, path).split(sep).join("/")}`);
  try {
    const { outputFiles } = await build({
      absWorkingDir: root,
      entryPoints: { main: "aenv:main", environment: "aenv:environment" },
      outdir: "out",
      chunkNames: "chunk-[hash]",
      bundle: true,
      splitting: true,
      write: false,
      platform: "node",
      format: "esm",
      target: "node22",
      // Minified code contains no paths of the sources, so that the bytes are the same everywhere. Names stay, for stack traces.
      minify: true,
      keepNames: true,
      logLevel: "silent",
      banner: { js: COMMONJS_NAMES },
      define: { __dirname: "__bundleDirname", __filename: "__bundleFilename" },
      plugins: [
        virtualModules({ "aenv:main": mainModule(), "aenv:environment": environmentModule(entries) }, root),
        ownPackageFallback(root),
        ownFilesHaveEffects(root),
      ],
    });
    return renameChunks(outputFiles.map(({ path, text }) => ({ path: basename(path), text })));
  } catch (error) {
    const problems = esbuildProblems((error as Partial<BuildFailure>).errors ?? [], root);
    if (problems.length === 0) throw error;
    throw new Failure(problems, { code: "environment.invalid", hint: missingPackageHint(problems), cause: error });
  }
}

/** esbuild names chunks after the paths of their sources. They are renamed after their content. */
function renameChunks(files: readonly { path: string; text: string }[]): TarEntry[] {
  const names = new Map<string, string>();
  for (const { path, text } of files) {
    const hash = createHash("sha256").update(text.replaceAll(CHUNK, "")).digest("hex");
    names.set(path, path.match(CHUNK) === null ? path : `chunk-${hash.slice(0, 12)}.js`);
  }
  return files.map(({ path, text }) => ({
    path: names.get(path) as string,
    bytes: Buffer.from(text.replaceAll(CHUNK, (name) => names.get(name) ?? name)),
  }));
}

const CHUNK = /\bchunk-[A-Z0-9]{8}\.js/g;

/** Variables that CommonJS packages expect in every file. */
const COMMONJS_NAMES = [
  'import{createRequire as __bundleCreateRequire}from"node:module";',
  "const require=__bundleCreateRequire(import.meta.url),__bundleFilename=import.meta.filename,__bundleDirname=import.meta.dirname;",
].join("");

/**
 * A bundle is a project: its config.json names the bundled module, and the kit loads it like any other. If `main.js` is
 * started, it serves. If a waiting process imports it, it exports its definition and serves on the server that it is given.
 */
function mainModule(): string {
  return `
    import { realpathSync } from "node:fs";
    import { loadEnvironment, runSandbox, serve } from "aenvironment/kit";
    const loading = loadEnvironment(import.meta.dirname);
    const isStarted = process.argv[1] !== undefined && realpathSync(process.argv[1]) === realpathSync(import.meta.filename);
    if (isStarted) await runSandbox(() => loading, process.argv.slice(2));
    export const { name, version, definition } = isStarted ? {} : await loading;
    export const serveOn = (server, options) => serve(definition, { first: null, ...options, name, version, server });
    export default definition;
  `;
}

function environmentModule(entries: readonly string[]): string {
  const imports = entries.map((entry, index) => `import * as module${index} from ${JSON.stringify(entry)};`);
  const defaults = entries.map((_, index) => `module${index}.default`);
  return `
    ${imports.join("\n")}
    const exported = [${defaults.join(", ")}].filter((value) => typeof value === "object" && value !== null);
    if (exported.length > 1) throw new Error("several files export an environment; name one as 'main' in config.json");
    export default exported[0];
  `;
}

function virtualModules(modules: Readonly<Record<string, string>>, root: string): Plugin {
  return {
    name: "virtual-modules",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^aenv:/ }, ({ path }) => ({ path, namespace: "aenv" }));
      onLoad({ filter: /.*/, namespace: "aenv" }, ({ path }) => ({ contents: modules[path] as string, resolveDir: root, loader: "js" }));
    },
  };
}

/** The project's installation of this package is used if there is one, else the package of this process. */
function ownPackageFallback(root: string): Plugin {
  return {
    name: "own-package",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /^aenvironment(?:\/|$)/ }, async ({ path, kind, pluginData }) => {
        if (pluginData === "own-package") return undefined;
        const installed = await resolve(path, { kind, resolveDir: root, pluginData: "own-package" });
        return installed.errors.length === 0
          ? installed
          : resolve(path, { kind, resolveDir: import.meta.dirname, pluginData: "own-package" });
      });
    },
  };
}

/**
 * Registering a tool is a side effect of a file. So no file of the project is left out, even if its package.json declares that the
 * package has no side effects. For packages that it imports, `sideEffects` is respected.
 */
function ownFilesHaveEffects(root: string): Plugin {
  // The bundler reports files by their real paths.
  const home = realpathSync(root);
  const isOwn = (path: string) => isAbsolute(path) && !/^\.\.(?:[\\/]|$)|(?:^|[\\/])node_modules[\\/]/.test(relative(home, path));
  return {
    name: "own-files-have-effects",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /.*/ }, async ({ path, kind, importer, resolveDir, namespace, with: attributes, pluginData }) => {
        if (pluginData === "resolved" || !(namespace === "aenv" || isOwn(importer))) return undefined;
        const found = await resolve(path, { kind, importer, resolveDir, namespace, with: attributes, pluginData: "resolved" });
        if (found.errors.length > 0 || found.external || found.namespace !== "file" || !isOwn(found.path)) return undefined;
        return { path: found.path, suffix: found.suffix, sideEffects: true };
      });
    },
  };
}
