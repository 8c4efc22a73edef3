import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { covers, type Drawing, DrawingError, mayImport, readDrawing } from "./drawing.ts";
import { compareInnerRooms, innerObjection } from "./inner-rooms.ts";
import type { Problem } from "./problem.ts";
import { type Room, readRooms, resolveImport, type SourceFile, type Target } from "./rooms.ts";

const MAP = "ARCHITECTURE.md";

/**
 * Holds the imports to the drawing in ARCHITECTURE.md: no arrow that is not drawn, no way into another room but its exported
 * subpaths, no package that the room does not declare, and no room that is only on paper or only on disk. The same for the rooms
 * inside a package, where the drawing names them.
 *
 * Tests (`*.test.ts`, `conformance.ts`, `fixtures/`, `testing/`, `interop/`) may import any room through its exported subpaths, and any package:
 * they ship nothing.
 */
export async function checkBoundaries(root: string): Promise<readonly Problem[]> {
  let drawing: Drawing;
  try {
    drawing = readDrawing(await readFile(join(root, MAP), "utf8"));
  } catch (error) {
    if (error instanceof DrawingError) return [{ file: MAP, line: error.line, message: error.message }];
    throw error;
  }
  const rooms = await readRooms(root);
  const problems = [...compareNames(drawing, rooms)];
  for (const room of rooms) {
    problems.push(...compareInnerRooms(drawing, room, MAP));
    for (const file of room.files) {
      for (const { specifier, line } of file.imports) {
        const message = objection(drawing, room, file, specifier, resolveImport(rooms, file, specifier));
        if (message !== null) problems.push({ file: file.path, line, message });
      }
    }
  }
  return problems;
}

function* compareNames(drawing: Drawing, rooms: readonly Room[]): Generator<Problem> {
  for (const [name, line] of drawing.names) {
    const isInner = rooms.some((room) => name.startsWith(`${room.name}/`));
    if (!isInner && !rooms.some((room) => covers(name, room.name)))
      yield { file: MAP, line, message: `the drawing has '${name}', but no such room exists` };
  }
  for (const room of rooms) {
    const isDrawn = [...drawing.names.keys()].some((name) => covers(name, room.name));
    if (!isDrawn) yield { file: room.folder, message: `this room is not in the drawing of ${MAP}` };
  }
}

/** What is wrong with an import, or null. */
function objection(drawing: Drawing, room: Room, file: SourceFile, specifier: string, target: Target): string | null {
  switch (target.kind) {
    case "unknown":
      return `'${specifier}' leads nowhere: ${target.why}`;
    case "node":
      return drawing.pure.has(room.name) && !file.isTest ? `${room.name} may not use Node's own '${specifier}'` : null;
    case "package":
      return file.isTest ? null : packageObjection(drawing, room, target.name);
    case "file": {
      if (target.room === room) return innerObjection(drawing, room, file, target.path);
      if (target.isDeep) return `'${specifier}' reaches into ${target.room.name}: import one of its exported subpaths`;
      if (file.isTest || mayImport(drawing, room.name, target.room.name)) return null;
      return `${room.name} may not import ${target.room.name} (see the drawing in ${MAP})`;
    }
  }
}

function packageObjection(drawing: Drawing, room: Room, name: string): string | null {
  const allowed = drawing.pure.get(room.name);
  if (allowed !== undefined && !allowed.includes(name)) return `${room.name} may import ${allowed.join(", ")} only, not '${name}'`;
  if (room.packageName === null || room.dependencies.has(name)) return null;
  return `'${name}' is not among the dependencies of ${room.folder}/package.json`;
}
