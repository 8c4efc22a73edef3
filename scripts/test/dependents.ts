import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { listFiles } from "../check/files.ts";
import { type Room, readRooms, resolveImport, type SourceFile } from "../check/rooms.ts";
import { tokenize } from "../check/tokens.ts";

/** What each file uses: the modules that it imports, and the files and folders that its strings name. */
export type Uses = ReadonlyMap<string, ReadonlySet<string>>;

/** A change of these reaches every test. */
const REACHES_ALL =
  /^(?:package(?:-lock)?\.json|vitest\.config\.ts|tsconfig\.json|testing\/src\/(?:clean-env|cost|long-files|longest-first|reporter|results)\.ts)$/;

/** Its strings name folders of every component, which a test that only asks for one of them does not use. */
const COMPONENTS = "testing/src/components.ts";

/** The test files that a change of `changed` can affect, sorted. */
export function affectedTests(uses: Uses, changed: readonly string[]): string[] {
  const tests = testsOf(uses);
  if (changed.some((path) => REACHES_ALL.test(path))) return tests;
  const dependents = dependentsOf(uses, changed);
  return tests.filter((test) => dependents.has(test));
}

export function testsOf(uses: Uses): string[] {
  return [...uses.keys()].filter((path) => path.endsWith(".test.ts")).sort();
}

/** The files themselves, and all that they use directly or through others. */
export function filesUsedBy(uses: Uses, files: readonly string[]): ReadonlySet<string> {
  const found = new Set(files);
  // A set also iterates over what is added meanwhile.
  for (const path of found) for (const used of uses.get(path) ?? []) found.add(used);
  return found;
}

/** The files themselves, and all that use them directly or through others. */
function dependentsOf(uses: Uses, files: readonly string[]): ReadonlySet<string> {
  const users = new Map<string, string[]>();
  for (const [user, used] of uses) for (const path of used) users.set(path, [...(users.get(path) ?? []), user]);
  const found = new Set(files);
  for (const path of found) for (const user of users.get(path) ?? []) found.add(user);
  return found;
}

export async function readUses(root: string): Promise<Uses> {
  const all = (await listFiles(root)).filter((path) => !path.startsWith("bench/results/"));
  const existing = new Set(all);
  const folders = filesByFolder(all);
  const rooms = await readRooms(root);
  const uses = new Map<string, ReadonlySet<string>>();
  for (const room of rooms) {
    for (const file of room.files) {
      const imported = file.imports.flatMap(({ specifier }) => fileOf(rooms, file, specifier));
      const strings = file.path === COMPONENTS ? [] : stringsOf(await readFile(join(root, file.path), "utf8"));
      const named = strings.flatMap((text) => [...fileOf(rooms, file, text), ...filesNamed(folders, file.path, text)]);
      const used = [posix.join(room.folder, "package.json"), ...imported, ...named];
      uses.set(file.path, new Set(used.filter((path) => existing.has(path))));
    }
  }
  return uses;
}

/** The file of an import, or of a module that a string names, such as `@aenv/kit/runner`. */
function fileOf(rooms: readonly Room[], file: SourceFile, specifier: string): string[] {
  const target = resolveImport(rooms, file, specifier);
  return target.kind === "file" ? [target.path] : [];
}

/** Strings, `./` before those of `new URL("…")`, and the folders that templates begin with: `docs/guides/` of `docs/guides/${name}.md`. */
function stringsOf(source: string): string[] {
  const tokens = tokenize(source);
  const strings = tokens.flatMap(({ kind, text }, index) => {
    if (kind !== "string") return [];
    return tokens[index - 2]?.text === "URL" && /^\w/.test(text) ? [`./${text}`] : [text];
  });
  const folders = [...source.matchAll(/`([\w./-]*\/)[^`/]*\$\{/g)].map(([, folder]) => folder as string);
  return [...new Set([...strings, ...folders])];
}

/** The files that a string names: a path from the file's folder or from the root, or a built-in environment for the command. */
function filesNamed(folders: ReadonlyMap<string, readonly string[]>, file: string, text: string): readonly string[] {
  if (text.length > 200 || !/^[\w@.][\w@./ -]*$/.test(text)) return [];
  const find = (...parts: string[]) => folders.get(posix.join(...parts).replace(/\/$/, "")) ?? [];
  const here = posix.dirname(file);
  // A folder around the file is a project in environments and examples. Elsewhere, other paths begin there.
  if (/^[./]*$/.test(text)) return /^(?:environments|examples)\//.test(file) ? find(here, text) : [];
  // A word without a slash or a dot mostly names no file.
  if (!/[./]/.test(text)) return /^(?:packages\/aenv|interop|scripts)\//.test(file) ? find("environments", text) : [];
  const isFromRoot = !text.startsWith(".") && (text.includes("/") || file.endsWith(".test.ts"));
  return [...find(here, text), ...(isFromRoot ? find(text) : [])];
}

/** Each file below its own path, and, tests apart, below each of its folders. */
function filesByFolder(all: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const folders = new Map<string, string[]>(all.map((path) => [path, [path]]));
  for (const path of all.filter((file) => !file.endsWith(".test.ts"))) {
    for (let folder = posix.dirname(path); folder !== "."; folder = posix.dirname(folder)) {
      const files = folders.get(folder);
      if (files === undefined) folders.set(folder, [path]);
      else files.push(path);
    }
  }
  return folders;
}
