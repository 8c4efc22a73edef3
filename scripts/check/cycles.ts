import type { Problem } from "./problem.ts";
import { readRooms, resolveImport } from "./rooms.ts";

/**
 * Finds import cycles between files, types included: two files that need each other's types belong together.
 * `import()` does not count, since it runs after loading.
 */
export async function checkCycles(root: string): Promise<readonly Problem[]> {
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
  return findCycles(graph).map((cycle) => {
    const [first, second] = [cycle[0] as string, cycle[1] ?? (cycle[0] as string)];
    const line = graph.get(first)?.find((edge) => edge.to === second)?.line ?? 1;
    return { file: first, line, message: `import cycle: ${[...cycle, first].join(" -> ")}` };
  });
}

export interface Edge {
  readonly to: string;
  readonly line: number;
}

/** One cycle for each strongly connected component of the graph: a shortest one through its first file. */
export function findCycles(graph: ReadonlyMap<string, readonly Edge[]>): string[][] {
  const cycles: string[][] = [];
  const reported = new Set<string>();
  for (const start of [...graph.keys()].sort()) {
    if (reported.has(start)) continue;
    const cycle = shortestCycle(graph, start);
    if (cycle === null) continue;
    cycles.push(cycle);
    // The other files of the component are on cycles too; one report is enough.
    for (const file of reach(graph, start)) if (reach(graph, file).has(start)) reported.add(file);
  }
  return cycles;
}

function shortestCycle(graph: ReadonlyMap<string, readonly Edge[]>, start: string): string[] | null {
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
