import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { listFiles } from "./files.ts";
import { findImports, type Import } from "./imports.ts";
import { lineAt } from "./problem.ts";

/** A part of the repository with checked imports: a workspace, `scripts` or `interop`. */
export interface Room {
  /** Its name in the diagram: `kit` for packages/kit, else the folder: `environments/echo`, `bench`. */
  readonly name: string;
  readonly folder: string;
  /** Its package name; null for folders that are not packages. */
  readonly packageName: string | null;
  /** Maps `.` and `./sub` to their files. */
  readonly exports: ReadonlyMap<string, string>;
  /** Maps its own `#names` to their files. */
  readonly imports: ReadonlyMap<string, string>;
  /** External packages that its shipped code may import. */
  readonly dependencies: ReadonlySet<string>;
  readonly files: readonly SourceFile[];
}

export interface SourceFile {
  readonly path: string;
  readonly isTest: boolean;
  readonly imports: readonly (Import & { readonly line: number })[];
}

/** The target of an import: a file of a room, an external package, a module of Node, or unresolved. */
export type Target =
  | { readonly kind: "file"; readonly room: Room; readonly path: string; readonly isDeep: boolean }
  | { readonly kind: "package"; readonly name: string }
  | { readonly kind: "node" }
  | { readonly kind: "unknown"; readonly why: string };

interface Manifest {
  readonly name?: string;
  readonly workspaces?: readonly string[];
  readonly exports?: unknown;
  readonly imports?: unknown;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Folders with code that are not workspaces. */
const LOOSE = ["scripts", "interop"];

/** The workspaces and the other folders with code, with the imports of their files. */
export async function readRooms(root: string): Promise<Room[]> {
  const all = (await listFiles(root)).filter((path) => !path.includes("/templates/"));
  const manifest = await readManifest(root, "");
  const folders = (manifest.workspaces ?? []).flatMap((pattern) => expand(pattern, all));
  for (const folder of LOOSE) if (all.some((path) => path.startsWith(`${folder}/`))) folders.push(folder);
  return Promise.all(folders.map((folder) => readRoom(root, folder, all)));
}

/** Tests, the code that they share (`conformance.ts` is a suite for every implementation), and rooms that are only for tests. */
export function isTest(path: string): boolean {
  return /(?:\.test|\/conformance)\.\w+$/.test(path) || /(?:^|\/)(?:fixtures|testing|interop)\//.test(path);
}

export function resolveImport(rooms: readonly Room[], from: SourceFile, specifier: string): Target {
  if (specifier.startsWith("node:")) return { kind: "node" };
  if (specifier.startsWith("#")) return resolveOwnName(rooms, from, specifier);
  if (specifier.startsWith(".")) return resolveRelative(rooms, posix.join(posix.dirname(from.path), specifier));
  const parts = specifier.split("/");
  const name = parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  const room = rooms.find((candidate) => candidate.packageName === name);
  if (room === undefined) return { kind: "package", name };
  const subpath = specifier === name ? "." : `.${specifier.slice(name.length)}`;
  const file = room.exports.get(subpath);
  return { kind: "file", room, path: file ?? posix.join(room.folder, subpath), isDeep: file === undefined };
}

function resolveOwnName(rooms: readonly Room[], from: SourceFile, specifier: string): Target {
  const room = roomOf(rooms, from.path);
  const path = room?.imports.get(specifier);
  if (room === undefined || path === undefined) return { kind: "unknown", why: "its package.json has no such name in `imports`" };
  return { kind: "file", room, path, isDeep: false };
}

function resolveRelative(rooms: readonly Room[], path: string): Target {
  const room = roomOf(rooms, path);
  if (room === undefined) return { kind: "unknown", why: `${path} is in no room` };
  return { kind: "file", room, path, isDeep: true };
}

function roomOf(rooms: readonly Room[], path: string): Room | undefined {
  return rooms.find((candidate) => path.startsWith(`${candidate.folder}/`));
}

/** `packages/*` to the folders in packages that have a package.json; a plain folder to itself. */
function expand(pattern: string, files: readonly string[]): string[] {
  if (!pattern.endsWith("/*")) return files.includes(`${pattern}/package.json`) ? [pattern] : [];
  const inside = new RegExp(`^(${pattern.slice(0, -2)}/[^/]+)/package\\.json$`);
  return files.flatMap((path) => inside.exec(path)?.[1] ?? []);
}

async function readRoom(root: string, folder: string, all: readonly string[]): Promise<Room> {
  const isWorkspace = !LOOSE.includes(folder);
  const manifest = await readManifest(root, folder);
  const paths = all.filter((path) => path.startsWith(`${folder}/`) && /\.[mc]?[jt]s$/.test(path) && !path.endsWith(".d.ts"));
  return {
    name: folder.replace(/^packages\//, ""),
    folder,
    packageName: isWorkspace ? (manifest.name ?? null) : null,
    exports: readTargets(folder, manifest.exports),
    imports: readTargets(folder, manifest.imports),
    dependencies: new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies })),
    files: await Promise.all(paths.map((path) => readSource(root, path))),
  };
}

async function readSource(root: string, path: string): Promise<SourceFile> {
  const source = await readFile(join(root, path), "utf8");
  const imports = findImports(source).map((found) => ({ ...found, line: lineAt(source, found.at) }));
  return { path, isTest: isTest(path), imports };
}

async function readManifest(root: string, folder: string): Promise<Manifest> {
  const path = join(root, folder, "package.json");
  return existsSync(path) ? JSON.parse(await readFile(path, "utf8")) : {};
}

/** Maps names to files, from `exports` or `imports`; of several conditions the default one. */
function readTargets(folder: string, value: unknown): Map<string, string> {
  const targets = new Map<string, string>();
  const table: Record<string, unknown> = typeof value === "string" ? { ".": value } : { ...(value as object) };
  for (const [name, target] of Object.entries(table)) {
    const file = typeof target === "string" ? target : (target as Record<string, unknown> | null)?.default;
    if (typeof file === "string") targets.set(name, posix.join(folder, file));
  }
  return targets;
}
