import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { SourceLocation } from "../definition/source-location.ts";
import { dataPath, loadEnvironment } from "./load.ts";

const kit = new URL("../index.ts", import.meta.url).href;
const folders: string[] = [];

async function project(files: Record<string, string>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "aenv-load-"));
  folders.push(root);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), text);
  }
  return root;
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

const config = JSON.stringify({ name: "shop", version: "2.0.0" });
const stateful = "export default { tools: [{ name: 'a', run: () => 1 }] };";
const oneFile = (name: string) => `import { registerTool } from ${JSON.stringify(kit)}; registerTool({ name: "${name}" }, () => 1);`;

describe("loadEnvironment", () => {
  it("takes name and version from config.json, and code from src/index", async () => {
    const root = await project({
      "config.json": config,
      "src/index.ts": `const one: number = 1; void one; ${stateful}`,
      "src/other.ts": "throw new Error('not loaded')",
    });
    const loaded = await loadEnvironment(root);
    expect(loaded).toMatchObject({ name: "shop", version: "2.0.0", root });
    expect(loaded.definition.tools).toHaveLength(1);
  });

  it("takes the file that config.json names as main", async () => {
    const root = await project({
      "config.json": JSON.stringify({ name: "shop", version: "1", main: "lib/env.mjs" }),
      "lib/env.mjs": stateful,
    });
    expect((await loadEnvironment(root)).entries).toEqual([join(root, "lib/env.mjs")]);
  });

  it("loads every file of src in the one-file style, but neither tests nor hidden ones", async () => {
    const root = await project({
      "config.json": config,
      "src/a.mjs": oneFile("a"),
      "src/b.mjs": oneFile("b"),
      "src/_draft.mjs": "throw 1",
      "src/a.test.mjs": "throw 1",
      "src/types.d.ts": "throw 1",
    });
    expect((await loadEnvironment(root)).definition.tools?.map((tool) => tool.name)).toEqual(["a", "b"]);
  });

  it("loads a single file without a project", async () => {
    const root = await project({ "my-env.mjs": stateful });
    expect(await loadEnvironment(join(root, "my-env.mjs"))).toMatchObject({ name: "my-env", version: "0.0.0", config: null });
  });

  it("points at the line of an error in the author's code", async () => {
    const root = await project({ "config.json": config, "src/index.mjs": "\n\nnull.oops;\n" });
    const failure = (await loadEnvironment(root).catch((error: unknown) => error)) as Error & { details: { place: SourceLocation } };
    expect(failure.message).toMatch(/^src\/index\.mjs:3: Cannot read properties of null/);
    expect(failure.details.place).toMatchObject({ file: join(root, "src/index.mjs"), line: 3 });
  });

  it("reports what is wrong with a project that defines no environment, or two", async () => {
    await expect(loadEnvironment(await project({ "config.json": config }))).rejects.toThrow(/has no code: write src\/index\.ts/);
    await expect(loadEnvironment(await project({ "config.json": config, "src/index.mjs": "export const a = 1;" }))).rejects.toThrow(
      /src\/index\.mjs defines no environment/,
    );
    const both = { "config.json": config, "src/index.mjs": `${oneFile("x")} ${stateful}` };
    await expect(loadEnvironment(await project(both))).rejects.toThrow(/use one of the two styles/);
    await expect(loadEnvironment("/no/such/place")).rejects.toThrow(/no such file or folder: '\/no\/such\/place'/);
  });

  it("refuses a config.json that is not JSON, or whose main does not exist", async () => {
    await expect(loadEnvironment(await project({ "config.json": "{," }))).rejects.toThrow(/config\.json is not valid JSON/);
    const missing = JSON.stringify({ name: "shop", version: "1", main: "src/x.ts" });
    await expect(loadEnvironment(await project({ "config.json": missing }))).rejects.toThrow(
      /main is "src\/x\.ts", but this file does not exist/,
    );
    await expect(loadEnvironment(await project({ "config.json": '{"name":"Shop","version":"1"}' }))).rejects.toThrow(/name is "Shop"/);
  });
});

describe("dataPath", () => {
  it("resolves a data file from the project's root, and no path outside of it", async () => {
    const root = await project({ "config.json": config, "src/index.mjs": stateful });
    await loadEnvironment(root);
    expect(dataPath("data/orders.json")).toBe(join(root, "data/orders.json"));
    expect(() => dataPath("../secrets")).toThrow(/leads out of the project/);
  });
});
