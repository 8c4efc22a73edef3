import { type Diagram, mayImport } from "./diagram.ts";
import type { Problem } from "./problem.ts";
import type { Room, SourceFile } from "./rooms.ts";

/**
 * The rooms inside a package: the folders of its `src`, named `server/hub` in the diagram. All folders of the packages in `packages/` are
 * drawn; those of other workspaces if the diagram names one of them. Files directly in `src` wire the inner rooms together, so they may
 * import all of them; an inner room may import those files only by an arrow to the package itself (`server/hub -> server`).
 */
function hasInnerRooms(diagram: Diagram, room: Room): boolean {
  return room.folder.startsWith("packages/") || innerNames(diagram, room).length > 0;
}

/** The inner room that a file of the package belongs to: `server/hub`, or `server` for a file directly in `src`. */
function innerRoomOf(room: Room, path: string): string {
  const folder = /^src\/([^/]+)\//.exec(path.slice(room.folder.length + 1))?.[1];
  return folder === undefined ? room.name : `${room.name}/${folder}`;
}

/** The problem of an import between two files of one package, or null. */
export function innerObjection(diagram: Diagram, room: Room, file: SourceFile, to: string): string | null {
  if (file.isTest || !hasInnerRooms(diagram, room)) return null;
  const from = innerRoomOf(room, file.path);
  const target = innerRoomOf(room, to);
  if (from === target || from === room.name || mayImport(diagram, from, target)) return null;
  return `${from} may not import ${target} (see the diagram in ARCHITECTURE.md)`;
}

/** Inner rooms that are only in the diagram or only on disk, and arrows that form a cycle. */
export function* compareInnerRooms(diagram: Diagram, room: Room, map: string): Generator<Problem> {
  if (!hasInnerRooms(diagram, room)) return;
  const drawn = innerNames(diagram, room);
  const folders = new Set(room.files.filter((file) => !file.isTest).map((file) => innerRoomOf(room, file.path)));
  folders.delete(room.name);
  for (const [name, line] of drawn) {
    if (!folders.has(name)) yield { file: map, line, message: `the diagram has '${name}', but no such room exists` };
  }
  const names = new Set(drawn.map(([name]) => name));
  for (const name of [...folders].sort()) {
    if (!names.has(name))
      yield { file: `${room.folder}/src/${name.slice(room.name.length + 1)}`, message: `this room is not in the diagram of ${map}` };
  }
  for (const [name, line] of drawn) {
    if (reaches(diagram, names, name)) yield { file: map, line, message: `the arrows from '${name}' form a cycle` };
  }
}

function innerNames(diagram: Diagram, room: Room): (readonly [string, number])[] {
  return [...diagram.names].filter(([name]) => name.startsWith(`${room.name}/`) && !name.endsWith("/*"));
}

function reaches(diagram: Diagram, names: ReadonlySet<string>, start: string): boolean {
  const seen = new Set<string>();
  const queue = [start];
  for (const here of queue) {
    for (const next of names) {
      if (next === here || seen.has(next) || !mayImport(diagram, here, next)) continue;
      if (next === start) return true;
      seen.add(next);
      queue.push(next);
    }
  }
  return false;
}
