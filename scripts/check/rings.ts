import type { Problem } from "./problem.ts";
import { readRooms, resolveImport } from "./rooms.ts";

/**
 * Finds files that import each other in a ring, types included: two files that need each other's types are one thing in two
 * places. `import()` does not count, since it runs after loading.
 */
export async function checkRings(root: string): Promise<readonly Problem[]> {
  const rooms = await readRooms(root);
  const graph = new Map<string, Edge[]>();
  for (const room of rooms) {
    for (const file of room.files) {
      const edges: Edge[] = [];
      for (const { specifier, line, isDynamic } of file.imports) {
        const target = resolveImport(rooms, file, specifier);
        if (!isDynamic && target.kind === "file") edges.push({ to: target.path, line });
      }
      graph.set(file.path, edges);
    }
  }
  return findRings(graph).map((ring) => {
    const [first, second] = [ring[0] as string, ring[1] ?? (ring[0] as string)];
    const line = graph.get(first)?.find((edge) => edge.to === second)?.line ?? 1;
    return { file: first, line, message: `import ring: ${[...ring, first].join(" -> ")}` };
  });
}

export interface Edge {
  readonly to: string;
  readonly line: number;
}

/** One ring for each knot of the graph, each a shortest way from its first file back to it. */
export function findRings(graph: ReadonlyMap<string, readonly Edge[]>): string[][] {
  const rings: string[][] = [];
  const reported = new Set<string>();
  for (const start of [...graph.keys()].sort()) {
    if (reported.has(start)) continue;
    const ring = shortestRing(graph, start);
    if (ring === null) continue;
    rings.push(ring);
    // Others of the same knot lie on rings as well; one report names the knot.
    for (const file of reach(graph, start)) if (reach(graph, file).has(start)) reported.add(file);
  }
  return rings;
}

function shortestRing(graph: ReadonlyMap<string, readonly Edge[]>, start: string): string[] | null {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const here of queue) {
    for (const { to } of graph.get(here) ?? []) {
      if (to === start) return unwind(cameFrom, start, here);
      if (cameFrom.has(to)) continue;
      cameFrom.set(to, here);
      queue.push(to);
    }
  }
  return null;
}

function unwind(cameFrom: ReadonlyMap<string, string>, start: string, end: string): string[] {
  const path = [end];
  for (let at = end; at !== start; ) {
    at = cameFrom.get(at) as string;
    path.unshift(at);
  }
  return path;
}

function reach(graph: ReadonlyMap<string, readonly Edge[]>, start: string): Set<string> {
  const seen = new Set<string>();
  const queue = [start];
  for (const here of queue) {
    for (const { to } of graph.get(here) ?? []) {
      if (seen.has(to)) continue;
      seen.add(to);
      queue.push(to);
    }
  }
  return seen;
}
