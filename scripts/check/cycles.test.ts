import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkCycles, findCycles } from "./cycles.ts";
import { formatProblem } from "./problem.ts";

const packages = {
  "package.json": { workspaces: ["packages/*"] },
  "packages/a/package.json": { name: "@acme/a", exports: "./index.ts" },
  "packages/b/package.json": { name: "@acme/b", exports: "./index.ts" },
};

async function ringsIn(files: Record<string, string>): Promise<string[]> {
  using tree = temporaryTree({ ...packages, ...files });
  return (await checkCycles(tree.path)).map(formatProblem);
}

describe("checkCycles", () => {
  it("names the files of a cycle, also across rooms", async () => {
    const files = {
      "packages/a/index.ts": 'import "./x.ts";\n',
      "packages/a/x.ts": 'import "node:fs";\nimport "@acme/b";\n',
      "packages/b/index.ts": 'export * from "@acme/a";\n',
    };
    expect(await ringsIn(files)).toEqual([
      "packages/a/index.ts:1: import cycle: packages/a/index.ts -> packages/a/x.ts -> packages/b/index.ts -> packages/a/index.ts",
    ]);
  });

  it("names a file that imports itself", async () => {
    expect(await ringsIn({ "packages/a/index.ts": '\nimport "./index.ts";\n' })).toEqual([
      "packages/a/index.ts:2: import cycle: packages/a/index.ts -> packages/a/index.ts",
    ]);
  });

  it("counts types, and ignores dynamic imports", async () => {
    const files = {
      "packages/a/index.ts": 'import "./x.ts";\nimport "./y.ts";\n',
      "packages/a/x.ts": 'import type { A } from "./index.ts";\n',
      "packages/a/y.ts": 'import("./index.ts");\n',
    };
    expect(await ringsIn(files)).toEqual([
      "packages/a/index.ts:1: import cycle: packages/a/index.ts -> packages/a/x.ts -> packages/a/index.ts",
    ]);
  });
});

describe("findCycles", () => {
  const graphs = fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 16 }).map((pairs) => {
    const graph = new Map<string, { to: string; line: number }[]>(Array.from({ length: 8 }, (_, index) => [String(index), []]));
    for (const [from, to] of pairs) graph.get(String(from))?.push({ to: String(to), line: 1 });
    return graph;
  });

  it("finds a cycle exactly when the files have no topological order", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        expect(findCycles(graph).length > 0).toBe(!canBeOrdered(graph));
      }),
    );
  });

  it("reports only true cycles, and no file twice", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const cycles = findCycles(graph);
        for (const cycle of cycles) {
          for (const [index, file] of cycle.entries()) {
            const next = cycle[(index + 1) % cycle.length];
            expect(graph.get(file)?.map((edge) => edge.to)).toContain(next);
          }
        }
        expect(new Set(cycles.flat()).size).toBe(cycles.flat().length);
      }),
    );
  });

  /** Takes away files that import nothing that is left, until none is left or none can be taken. */
  function canBeOrdered(graph: ReadonlyMap<string, readonly { to: string }[]>): boolean {
    const left = new Set(graph.keys());
    for (let before = -1; before !== left.size; ) {
      before = left.size;
      for (const file of left) if (!graph.get(file)?.some((edge) => left.has(edge.to))) left.delete(file);
    }
    return left.size === 0;
  }
});
