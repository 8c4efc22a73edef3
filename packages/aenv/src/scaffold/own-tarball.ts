import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { promisify } from "node:util";
import { packArchive } from "../bundle/archive.ts";
import { ownFolder, ownPackage } from "../project/own-package.ts";
import { Failure } from "../terminal/failure.ts";

/** The package as a file that npm can install, for projects that are created from a clone. */
export interface Tarball {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const root = join(ownFolder, "../..");
const builder = join(ownFolder, "scripts/build.ts");

/** The files that the package is built from. */
const sources = ["packages/*/package.json", "packages/*/{src,bin,init,templates,scripts}/**", "environments/*/**", "interop/package.json"];

/**
 * In a clone, the package built from the current sources; in a project that was created from a clone, the tarball it was installed from.
 * Null in a package that npm installed from a registry. In a clone it is built once per state of the sources, and the same sources give
 * the same name and bytes.
 */
export async function ownTarball(): Promise<Tarball | null> {
  if (!existsSync(builder)) return installedTarball(root);
  const digest = digestOfSources();
  const name = `aenvironment-${ownPackage().version}-${digest.slice(0, 12)}.tgz`;
  const cache = join(root, "node_modules/.cache/aenvironment");
  const kept = join(cache, name);
  if (!existsSync(kept)) {
    const bytes = await build();
    mkdirSync(cache, { recursive: true });
    // Tarballs of older sources are not needed again.
    for (const old of readdirSync(cache)) if (old.endsWith(".tgz") && old !== name) rmSync(join(cache, old), { force: true });
    // Renamed when it is complete: another `init` may read it at the same time.
    const partial = join(cache, `.${process.pid}`);
    writeFileSync(partial, bytes);
    renameSync(partial, kept);
    return { name, bytes };
  }
  return { name, bytes: readFileSync(kept) };
}

/** The file that the package in `folder` was installed from; null if it came from a registry. */
export function installedTarball(folder: string): Tarball | null {
  const file = installedFrom(folder);
  if (file === null) return null;
  const path = resolve(folder, file);
  if (existsSync(path)) return { name: basename(path), bytes: readFileSync(path) };
  throw new Failure(`aenvironment was installed from ${path}, which does not exist any more, so a new project could not install it`, {
    hint: "Put the file back, or create the project from the clone: npx aenvironment init NAME --work-dir FOLDER",
  });
}

/** What npm has written down about the installed package: `file:aenvironment-0.1.0-….tgz`. */
function installedFrom(folder: string): string | null {
  const lock = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(lock)) return null;
  const { packages = {} } = JSON.parse(readFileSync(lock, "utf8")) as { packages?: Record<string, { resolved?: string }> };
  const [, file = null] = /^file:(.+\.tgz)$/.exec(packages["node_modules/aenvironment"]?.resolved ?? "") ?? [];
  return file;
}

function digestOfSources(): string {
  const hash = createHash("sha256");
  const exclude = (path: string) => path === "node_modules" || path.endsWith(".test.ts");
  const files = globSync(sources, { cwd: root, withFileTypes: true, exclude: (entry) => exclude(entry.name) })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  for (const file of files) hash.update(file.slice(root.length)).update("\0").update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

async function build(): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), "aenvironment-"));
  try {
    await promisify(execFile)(process.execPath, [builder, folder], { cwd: root });
    const files = globSync("**", { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile());
    const entries = files.map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return { path: `package/${file.slice(folder.length + 1).replaceAll("\\", "/")}`, bytes: readFileSync(file) };
    });
    return packArchive(entries).bytes;
  } catch (cause) {
    const { stderr = "" } = cause as { stderr?: string };
    throw new Failure(`the package could not be built from the clone in ${root}${stderr === "" ? "" : `:\n${stderr.trim()}`}`, {
      hint: `Install the build tools: npm install --prefix ${root}`,
      cause,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
