import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { checkBoundaries } from "./boundaries.ts";
import { formatProblem } from "./problem.ts";

const drawing = `# A house

\`\`\`drawing
contract imports zod only
kit -> contract
environments/* -> kit
scripts -> kit
\`\`\`
`;

const house = {
  "ARCHITECTURE.md": drawing,
  "package.json": { workspaces: ["packages/*", "environments/*"] },
  "packages/contract/package.json": { name: "@house/contract", exports: { ".": "./src/index.ts" }, dependencies: { zod: "4" } },
  "packages/contract/src/index.ts": 'import { z } from "zod";\nexport const a = z.string();\n',
  "packages/kit/package.json": {
    name: "@house/kit",
    exports: { ".": "./src/index.ts", "./extra": { types: "./src/extra.ts", default: "./src/extra.ts" } },
    dependencies: { ajv: "8" },
  },
  "packages/kit/src/index.ts": 'import "node:fs";\nimport "ajv";\nexport { a } from "@house/contract";\nexport { b } from "./extra.ts";\n',
  "packages/kit/src/extra.ts": "export const b = 1;\n",
  "environments/echo/package.json": { name: "@house/echo", exports: "./src/index.ts" },
  "environments/echo/src/index.ts": 'import "@house/kit";\nimport "@house/kit/extra";\n',
  "scripts/tool.ts": 'import "@house/kit";\n',
};

async function problemsWith(changes: Record<string, unknown>): Promise<string[]> {
  using tree = temporaryTree({ ...house, ...changes });
  return (await checkBoundaries(tree.path)).map(formatProblem);
}

describe("checkBoundaries", () => {
  it("is content with a house that is as drawn", async () => {
    expect(await problemsWith({})).toEqual([]);
  });

  it("fails on an arrow that is not drawn, even for types or later loading", async () => {
    const source = 'import type { A } from "@house/kit";\n\nawait import("@house/kit");\nexport * from "@house/kit";\n';
    expect(await problemsWith({ "packages/contract/src/more.ts": source })).toEqual([
      "packages/contract/src/more.ts:1: contract may not import kit (see the drawing in ARCHITECTURE.md)",
      "packages/contract/src/more.ts:3: contract may not import kit (see the drawing in ARCHITECTURE.md)",
      "packages/contract/src/more.ts:4: contract may not import kit (see the drawing in ARCHITECTURE.md)",
    ]);
  });

  it("fails on a way into a room that it does not export", async () => {
    expect(
      await problemsWith({
        "environments/echo/src/deep.ts": 'import "@house/kit/src/extra.ts";\nimport "../../../packages/kit/src/extra.ts";\n',
      }),
    ).toEqual([
      "environments/echo/src/deep.ts:1: '@house/kit/src/extra.ts' reaches into kit: import one of its exported subpaths",
      "environments/echo/src/deep.ts:2: '../../../packages/kit/src/extra.ts' reaches into kit: import one of its exported subpaths",
    ]);
  });

  it("knows a room's own names, and fails on one that it does not have", async () => {
    const manifest = {
      ...house["packages/kit/package.json"],
      imports: { "#entry": { browser: "./src/web.ts", default: "./src/extra.ts" } },
    };
    const source = 'import "#entry";\nimport "#window";\n';
    expect(await problemsWith({ "packages/kit/package.json": manifest, "packages/kit/src/more.ts": source })).toEqual([
      "packages/kit/src/more.ts:2: '#window' leads nowhere: its package.json has no such name in `imports`",
    ]);
  });

  it("fails on a path that leaves the house", async () => {
    expect(await problemsWith({ "scripts/out.ts": 'import "../../other.ts";\n' })).toEqual([
      "scripts/out.ts:1: '../../other.ts' leads nowhere: ../other.ts is in no room",
    ]);
  });

  it("fails on a package that the room does not declare", async () => {
    expect(await problemsWith({ "packages/kit/src/more.ts": 'import "@scope/left/pad";\n' })).toEqual([
      "packages/kit/src/more.ts:1: '@scope/left' is not among the dependencies of packages/kit/package.json",
    ]);
  });

  it("holds a pure room to its packages and keeps Node out of it", async () => {
    expect(await problemsWith({ "packages/contract/src/more.ts": 'import "ajv";\nimport "node:fs";\n' })).toEqual([
      "packages/contract/src/more.ts:1: contract may import zod only, not 'ajv'",
      "packages/contract/src/more.ts:2: contract may not use Node's own 'node:fs'",
    ]);
  });

  it("fails on a room that is only on paper, and on one that is only on disk", async () => {
    const changes = {
      "ARCHITECTURE.md": drawing.replace("scripts -> kit", "kit <- attic"),
      "packages/cellar/package.json": { name: "@house/cellar" },
    };
    expect(await problemsWith(changes)).toEqual([
      "ARCHITECTURE.md:7: the drawing has 'attic', but no such room exists",
      "packages/cellar: this room is not in the drawing of ARCHITECTURE.md",
      "scripts: this room is not in the drawing of ARCHITECTURE.md",
      "scripts/tool.ts:1: scripts may not import kit (see the drawing in ARCHITECTURE.md)",
    ]);
  });

  it("lets tests import any room and package, but only through its entry point", async () => {
    const source = 'import "vitest";\nimport "node:fs";\nimport "@house/kit";\nimport "@house/kit/src/extra.ts";\n';
    expect(
      await problemsWith({
        "packages/contract/src/index.test.ts": source,
        "packages/contract/src/conformance.ts": 'import "vitest";\n',
        "packages/contract/fixtures/a.ts": 'import "@house/kit";\n',
      }),
    ).toEqual(["packages/contract/src/index.test.ts:4: '@house/kit/src/extra.ts' reaches into kit: import one of its exported subpaths"]);
  });

  describe("inside a package", () => {
    const inner = {
      "ARCHITECTURE.md": drawing.replace(
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

    it("lets the drawn arrows be, and files directly in src import every room", async () => {
      expect(await problemsWith(named)).toEqual([]);
    });

    it("fails on an arrow that is not drawn, types included, and lets tests import what they like", async () => {
      const source = 'import type { A } from "../serve/serve.ts";\nimport "../extra.ts";\n';
      const changes = { ...named, "packages/kit/src/store/store.ts": source, "packages/kit/src/store/store.test.ts": source };
      expect(await problemsWith(changes)).toEqual([
        "packages/kit/src/store/store.ts:1: kit/store may not import kit/serve (see the drawing in ARCHITECTURE.md)",
        "packages/kit/src/store/store.ts:2: kit/store may not import kit (see the drawing in ARCHITECTURE.md)",
      ]);
    });

    it("fails on a folder that is not drawn, on a drawn one that is missing, and on arrows that form a ring", async () => {
      const changes = {
        ...named,
        "ARCHITECTURE.md": named["ARCHITECTURE.md"].replace("kit/mcp -> kit/store", "kit/mcp -> kit/store, kit/serve, kit/attic"),
        "packages/kit/src/cellar/wine.ts": "export {};\n",
      };
      expect(await problemsWith(changes)).toEqual([
        "ARCHITECTURE.md:9: the drawing has 'kit/attic', but no such room exists",
        "packages/kit/src/cellar: this room is not in the drawing of ARCHITECTURE.md",
        "ARCHITECTURE.md:8: the arrows from 'kit/serve' lead back to it",
        "ARCHITECTURE.md:8: the arrows from 'kit/mcp' lead back to it",
      ]);
    });

    it("takes a star for every room inside", async () => {
      expect(await problemsWith(inner)).toEqual([]);
    });
  });

  it("says which line of the drawing it cannot read", async () => {
    expect(await problemsWith({ "ARCHITECTURE.md": drawing.replace("kit -> contract", "kit uses contract") })).toEqual([
      "ARCHITECTURE.md:5: cannot read 'kit uses contract': write 'a -> b', 'b <- a' or 'a imports zod only'",
    ]);
  });
});
