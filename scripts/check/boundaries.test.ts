import { readFile } from "node:fs/promises";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { checkBoundaries } from "./boundaries.ts";
import { formatProblem } from "./problem.ts";

const diagram = `# A house

\`\`\`diagram
contract imports zod only
kit -> contract
environments/* -> kit
scripts -> kit
\`\`\`
`;

const house = {
  "ARCHITECTURE.md": diagram,
  "package.json": { workspaces: ["packages/*", "environments/*"] },
  "packages/contract/package.json": { name: "@acme/contract", exports: { ".": "./src/index.ts" }, dependencies: { zod: "4" } },
  "packages/contract/src/index.ts": 'import { z } from "zod";\nexport const a = z.string();\n',
  "packages/kit/package.json": {
    name: "@acme/kit",
    exports: { ".": "./src/index.ts", "./extra": { types: "./src/extra.ts", default: "./src/extra.ts" } },
    dependencies: { ajv: "8" },
  },
  "packages/kit/src/index.ts": 'import "node:fs";\nimport "ajv";\nexport { a } from "@acme/contract";\nexport { b } from "./extra.ts";\n',
  "packages/kit/src/extra.ts": "export const b = 1;\n",
  "environments/echo/package.json": { name: "@acme/echo", exports: "./src/index.ts" },
  "environments/echo/src/index.ts": 'import "@acme/kit";\nimport "@acme/kit/extra";\n',
  "scripts/tool.ts": 'import "@acme/kit";\n',
};

async function problemsWith(changes: Record<string, unknown>): Promise<string[]> {
  using tree = temporaryTree({ ...house, ...changes });
  return (await checkBoundaries(tree.path)).map(formatProblem);
}

describe("checkBoundaries", () => {
  it("accepts imports that follow the diagram", async () => {
    expect(await problemsWith({})).toEqual([]);
  });

  it("fails on an import without an arrow, also of types and by import()", async () => {
    const source = 'import type { A } from "@acme/kit";\n\nawait import("@acme/kit");\nexport * from "@acme/kit";\n';
    expect(await problemsWith({ "packages/contract/src/more.ts": source })).toEqual([
      "packages/contract/src/more.ts:1: contract may not import kit (see the diagram in ARCHITECTURE.md)",
      "packages/contract/src/more.ts:3: contract may not import kit (see the diagram in ARCHITECTURE.md)",
      "packages/contract/src/more.ts:4: contract may not import kit (see the diagram in ARCHITECTURE.md)",
    ]);
  });

  it("fails on an import that bypasses a room's exports", async () => {
    expect(
      await problemsWith({
        "environments/echo/src/deep.ts": 'import "@acme/kit/src/extra.ts";\nimport "../../../packages/kit/src/extra.ts";\n',
      }),
    ).toEqual([
      "environments/echo/src/deep.ts:1: '@acme/kit/src/extra.ts' bypasses the exports of kit: import one of its exported subpaths",
      "environments/echo/src/deep.ts:2: '../../../packages/kit/src/extra.ts' bypasses the exports of kit: import one of its exported subpaths",
    ]);
  });

  it("resolves a room's own #names, and fails on an unknown one", async () => {
    const manifest = {
      ...house["packages/kit/package.json"],
      imports: { "#entry": { browser: "./src/web.ts", default: "./src/extra.ts" } },
    };
    const source = 'import "#entry";\nimport "#window";\n';
    expect(await problemsWith({ "packages/kit/package.json": manifest, "packages/kit/src/more.ts": source })).toEqual([
      "packages/kit/src/more.ts:2: '#window' cannot be resolved: its package.json has no such name in `imports`",
    ]);
  });

  it("fails on a path outside the repository", async () => {
    expect(await problemsWith({ "scripts/out.ts": 'import "../../other.ts";\n' })).toEqual([
      "scripts/out.ts:1: '../../other.ts' cannot be resolved: ../other.ts is in no room",
    ]);
  });

  it("fails on a package that the room does not declare", async () => {
    expect(await problemsWith({ "packages/kit/src/more.ts": 'import "@scope/left/pad";\n' })).toEqual([
      "packages/kit/src/more.ts:1: '@scope/left' is not among the dependencies of packages/kit/package.json",
    ]);
  });

  it("allows a pure room only its packages and no module of Node", async () => {
    expect(await problemsWith({ "packages/contract/src/more.ts": 'import "ajv";\nimport "node:fs";\n' })).toEqual([
      "packages/contract/src/more.ts:1: contract may import zod only, not 'ajv'",
      "packages/contract/src/more.ts:2: contract may not import Node's 'node:fs'",
    ]);
  });

  it("fails on a room that is only in the diagram, and on one that is only on disk", async () => {
    const changes = {
      "ARCHITECTURE.md": diagram.replace("scripts -> kit", "kit <- attic"),
      "packages/cellar/package.json": { name: "@acme/cellar" },
    };
    expect(await problemsWith(changes)).toEqual([
      "ARCHITECTURE.md:7: the diagram has 'attic', but no such room exists",
      "packages/cellar: this room is not in the diagram of ARCHITECTURE.md",
      "scripts: this room is not in the diagram of ARCHITECTURE.md",
      "scripts/tool.ts:1: scripts may not import kit (see the diagram in ARCHITECTURE.md)",
    ]);
  });

  it("lets tests import any room and package, but only through its entry point", async () => {
    const source = 'import "vitest";\nimport "node:fs";\nimport "@acme/kit";\nimport "@acme/kit/src/extra.ts";\n';
    expect(
      await problemsWith({
        "packages/contract/src/index.test.ts": source,
        "packages/contract/src/conformance.ts": 'import "vitest";\n',
        "packages/contract/fixtures/a.ts": 'import "@acme/kit";\n',
      }),
    ).toEqual([
      "packages/contract/src/index.test.ts:4: '@acme/kit/src/extra.ts' bypasses the exports of kit: import one of its exported subpaths",
    ]);
  });

  describe("inside a package", () => {
    const inner = {
      "ARCHITECTURE.md": diagram.replace(
        "scripts -> kit",
        "scripts -> kit\nkit/serve -> kit/mcp, kit\nkit/mcp -> kit/store\nkit/* -> kit/http",
      ),
      "packages/kit/src/serve/serve.ts": 'import "../mcp/mcp.ts";\nimport "../http/http.ts";\nimport "../extra.ts";\n',
      "packages/kit/src/mcp/mcp.ts": 'import "../store/store.ts";\n',
      "packages/kit/src/store/store.ts": "export {};\n",
      "packages/kit/src/http/http.ts": "export {};\n",
      "packages/kit/src/main.ts": 'import "./serve/serve.ts";\nimport "./store/store.ts";\n',
    };
    const named = { ...inner, "ARCHITECTURE.md": inner["ARCHITECTURE.md"].replace("kit/* -> kit/http", "kit/serve, kit/mcp -> kit/http") };

    it("accepts the arrows of the diagram, and lets files directly in src import every room", async () => {
      expect(await problemsWith(named)).toEqual([]);
    });

    it("fails on an import without an arrow, types included, and lets tests import every room", async () => {
      const source = 'import type { A } from "../serve/serve.ts";\nimport "../extra.ts";\n';
      const changes = { ...named, "packages/kit/src/store/store.ts": source, "packages/kit/src/store/store.test.ts": source };
      expect(await problemsWith(changes)).toEqual([
        "packages/kit/src/store/store.ts:1: kit/store may not import kit/serve (see the diagram in ARCHITECTURE.md)",
        "packages/kit/src/store/store.ts:2: kit/store may not import kit (see the diagram in ARCHITECTURE.md)",
      ]);
    });

    it("fails on a folder that is not in the diagram, on a missing folder of the diagram, and on arrows that form a cycle", async () => {
      const changes = {
        ...named,
        "ARCHITECTURE.md": named["ARCHITECTURE.md"].replace("kit/mcp -> kit/store", "kit/mcp -> kit/store, kit/serve, kit/attic"),
        "packages/kit/src/cellar/wine.ts": "export {};\n",
      };
      expect(await problemsWith(changes)).toEqual([
        "ARCHITECTURE.md:9: the diagram has 'kit/attic', but no such room exists",
        "packages/kit/src/cellar: this room is not in the diagram of ARCHITECTURE.md",
        "ARCHITECTURE.md:8: the arrows from 'kit/serve' form a cycle",
        "ARCHITECTURE.md:8: the arrows from 'kit/mcp' form a cycle",
      ]);
    });

    it("fails on a package whose folders are not in the diagram", async () => {
      const file = { "packages/contract/src/cellar/wine.ts": "export {};\n" };
      expect(await problemsWith(file)).toEqual(["packages/contract/src/cellar: this room is not in the diagram of ARCHITECTURE.md"]);
    });

    it.each([
      ["sandbox", "docker", "oci"],
      ["rollout", "player", "agents"],
    ])("fails on a wrong arrow in %s, by the diagram of this repository: %s -> %s", async (name, from, to) => {
      const planted = `packages/${name}/src/${from}/planted.ts`;
      using tree = temporaryTree({
        "ARCHITECTURE.md": await readFile(new URL("../../ARCHITECTURE.md", import.meta.url), "utf8"),
        "package.json": { workspaces: ["packages/*"] },
        [`packages/${name}/package.json`]: { name: `@aenv/${name}` },
        [`packages/${name}/src/${to}/known.ts`]: "export {};\n",
        [planted]: `import type { A } from "../${to}/known.ts";\n`,
      });
      const problems = (await checkBoundaries(tree.path)).map(formatProblem);
      expect(problems.filter((problem) => problem.startsWith("packages/"))).toEqual([
        `${planted}:1: ${name}/${from} may not import ${name}/${to} (see the diagram in ARCHITECTURE.md)`,
      ]);
    });

    it("matches every inner room by a star", async () => {
      expect(await problemsWith(inner)).toEqual([]);
    });
  });

  it("names the line of the diagram that it cannot parse", async () => {
    expect(await problemsWith({ "ARCHITECTURE.md": diagram.replace("kit -> contract", "kit uses contract") })).toEqual([
      "ARCHITECTURE.md:5: cannot parse 'kit uses contract': write 'a -> b', 'b <- a' or 'a imports zod only'",
    ]);
  });
});
