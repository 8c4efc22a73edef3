import { cpSync, existsSync, globSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { Failure } from "../terminal/failure.ts";
import { type ProgramRun, runProgram } from "./run-program.ts";
import type { ServerCommand } from "./server-command.ts";

/** A server of JavaScript that was installed, with the file that starts it. */
export interface InstalledServer {
  readonly name: string;
  readonly version: string;
  /** The folder with its `node_modules`; null for a file that is not of a package. */
  readonly folder: string | null;
  readonly entry: string;
}

interface PackageJson {
  readonly name?: string;
  readonly version?: string;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Installs a package of npm. No code of it or of what it needs runs. */
export async function installFromNpm(
  { spec, bin }: Extract<ServerCommand, { kind: "npm" }>,
  folder: string,
  run: Pick<ProgramRun, "env" | "signal">,
): Promise<InstalledServer> {
  mkdirSync(folder, { recursive: true });
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error", "--prefix", folder, "--", spec];
  await runProgram("npm", args, { what: `npm install ${spec}`, cwd: folder, ...run });
  const { dependencies = {} } = readPackage(folder);
  const [name = spec] = Object.keys(dependencies);
  const home = join(folder, "node_modules", name);
  const { version = "0.0.0", bin: bins } = readPackage(home);
  return { name, version, folder, entry: join(home, chosenBin(name, bins, bin)) };
}

/** A file of this machine, and what it imports. */
export function localServer(file: string, cwd: string): InstalledServer {
  const entry = resolve(cwd, file);
  if (!existsSync(entry)) throw new Failure(`there is no file ${entry}`, { exit: "usage" });
  return { name: basename(entry).replace(/\.\w+$/, ""), version: "0.0.0", folder: null, entry };
}

function readPackage(folder: string): PackageJson {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageJson;
}

function chosenBin(name: string, bins: PackageJson["bin"], wanted: string | null): string {
  const all = typeof bins === "string" ? { [basename(name)]: bins } : (bins ?? {});
  const names = Object.keys(all);
  const found = wanted ?? (names.length === 1 ? names[0] : names.find((one) => one === basename(name)));
  const path = found === undefined ? undefined : all[found];
  if (path !== undefined) return path;
  if (names.length === 0)
    throw new Failure(`the package ${name} has no program`, { hint: "Is it an MCP server that is started with npx?" });
  throw new Failure(`the package ${name} has the programs ${names.join(", ")}; name one`, {
    exit: "usage",
    hint: `For example: npx -y -p ${name} ${names[0]}`,
  });
}

/** Compiled modules cannot be in a bundle. */
export function hasNativeModules({ folder }: InstalledServer): boolean {
  return folder !== null && globSync("node_modules/**/*.node", { cwd: folder }).length > 0;
}

/** The server and all that it imports as one file, beside the data files of its package. */
export async function bundleServer(installed: InstalledServer, outfile: string): Promise<void> {
  const data = dataFilesOf(installed);
  const { folder, name, entry } = installed;
  const home = join(folder ?? "", "node_modules", name);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    minify: true,
    keepNames: true,
    logLevel: "silent",
    // What CommonJS packages expect in every file.
    banner: {
      js: [
        'import{createRequire as __mountRequire}from"node:module";',
        "const require=__mountRequire(import.meta.url),__mountFilename=import.meta.filename,__mountDirname=import.meta.dirname;",
      ].join(""),
    },
    define: { __dirname: "__mountDirname", __filename: "__mountFilename" },
    plugins: data.length === 0 ? [] : [keepsPlaces(realpathSync(home))],
  });
  for (const path of data) cpSync(join(home, path), join(dirname(outfile), PACKAGE, path));
}

/** Where the data files of the package lie, beside the bundle. */
const PACKAGE = "package";

/** What a package may read while it runs: its files that are neither code nor words for people. */
function dataFilesOf({ folder, name }: InstalledServer): string[] {
  if (folder === null) return [];
  const home = join(folder, "node_modules", name);
  const isCode = (path: string) => /\.(?:[cm]?[jt]sx?|map|tsbuildinfo)$/.test(path);
  const isForPeople = (path: string) => /^(?:readme|license|licence|changelog|notice|history|contributing|security)\b[^/]*$/i.test(path);
  const found = globSync("**", { cwd: home, exclude: (one) => one === "node_modules" }).filter(
    (path) => path !== "package.json" && !isCode(path) && !isForPeople(path) && statSync(join(home, path)).isFile(),
  );
  return found.length === 0 ? [] : [...found, "package.json"].sort();
}

/** A module of the package finds data files from where it lay, not from where the bundle lies. */
function keepsPlaces(home: string): Plugin {
  return {
    name: "keeps-places",
    setup({ onLoad }) {
      onLoad({ filter: /\.m?js$/ }, ({ path }) => {
        if (!path.startsWith(`${home}/`) || path.startsWith(`${home}/node_modules/`)) return undefined;
        const text = readFileSync(path, "utf8");
        if (!text.includes("import.meta.url")) return undefined;
        const place = JSON.stringify(`./${PACKAGE}/${relative(home, path)}`);
        // The url of the bundle, which the plugin must not replace again.
        return { contents: text.replaceAll("import.meta.url", `new URL(${place},import.meta["url"]).href`), loader: "js" };
      });
    },
  };
}

/** The installed folder as it is, without links to programs. Returns the path of the entry below `to`. */
export function copyInstalled({ folder, entry }: InstalledServer, to: string): string {
  if (folder === null) throw new Failure("a file that cannot be bundled is not mounted; make a package of it");
  const from = join(folder, "node_modules");
  rmSync(join(from, ".bin"), { recursive: true, force: true });
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, join(to, "node_modules"), { recursive: true, dereference: true });
  return relative(folder, entry).replaceAll("\\", "/");
}
