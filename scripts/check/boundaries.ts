import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { covers, type Diagram, DiagramError, mayImport, readDiagram } from "./diagram.ts";
import { compareInnerRooms, innerObjection } from "./inner-rooms.ts";
import type { Problem } from "./problem.ts";
import { type Room, readRooms, resolveImport, type SourceFile, type Target } from "./rooms.ts";

const MAP = "ARCHITECTURE.md";

/**
 * Checks all imports against the diagram in ARCHITECTURE.md. Fails on an import without an arrow, an import that bypasses a room's
 * exported subpaths, a package that the room does not declare, and a room that is only in the diagram or only on disk. The same
 * for the rooms inside a package.
 *
 * Tests (`*.test.ts`, `conformance.ts`, `fixtures/`, `testing/`, `interop/`) may import any room through its exported subpaths, and any package:
 * they ship nothing.
 */
export async function checkBoundaries(root: string): Promise<readonly Problem[]> {
  let diagram: Diagram;
  try {
    diagram = readDiagram(await readFile(join(root, MAP), "utf8"));
  } catch (error) {
    if (error instanceof DiagramError) return [{ file: MAP, line: error.line, message: error.message }];
    throw error;
  }
  const rooms = await readRooms(root);
  const problems = [...compareNames(diagram, rooms)];
  for (const room of rooms) {
    problems.push(...compareInnerRooms(diagram, room, MAP));
    for (const file of room.files) {
      for (const { specifier, line } of file.imports) {
        const message = objection(diagram, room, file, specifier, resolveImport(rooms, file, specifier));
        if (message !== null) problems.push({ file: file.path, line, message });
      }
    }
  }
  return problems;
}

function* compareNames(diagram: Diagram, rooms: readonly Room[]): Generator<Problem> {
  for (const [name, line] of diagram.names) {
    const isInner = rooms.some((room) => name.startsWith(`${room.name}/`));
    if (!isInner && !rooms.some((room) => covers(name, room.name)))
      yield { file: MAP, line, message: `the diagram has '${name}', but no such room exists` };
  }
  for (const room of rooms) {
    const isDrawn = [...diagram.names.keys()].some((name) => covers(name, room.name));
    if (!isDrawn) yield { file: room.folder, message: `this room is not in the diagram of ${MAP}` };
  }
}

/** The problem of an import, or null. */
function objection(diagram: Diagram, room: Room, file: SourceFile, specifier: string, target: Target): string | null {
  switch (target.kind) {
    case "unknown":
      return `'${specifier}' cannot be resolved: ${target.why}`;
    case "node":
      return diagram.pure.has(room.name) && !file.isTest ? `${room.name} may not import Node's '${specifier}'` : null;
    case "package":
      return file.isTest ? null : packageObjection(diagram, room, target.name);
    case "file": {
      if (target.room === room) return innerObjection(diagram, room, file, target.path);
      if (target.isDeep) return `'${specifier}' bypasses the exports of ${target.room.name}: import one of its exported subpaths`;
      if (file.isTest || mayImport(diagram, room.name, target.room.name)) return null;
      return `${room.name} may not import ${target.room.name} (see the diagram in ${MAP})`;
    }
  }
}

function packageObjection(diagram: Diagram, room: Room, name: string): string | null {
  const allowed = diagram.pure.get(room.name);
  if (allowed !== undefined && !allowed.includes(name)) return `${room.name} may import ${allowed.join(", ")} only, not '${name}'`;
  if (room.packageName === null || room.dependencies.has(name)) return null;
  return `'${name}' is not among the dependencies of ${room.folder}/package.json`;
}
