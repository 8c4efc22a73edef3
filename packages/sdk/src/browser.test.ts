import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { httpServer, sendJson } from "../fixtures/http-server.ts";

const here = import.meta.dirname;
const contract = join(here, "../../contract/src/index.ts");

function bundleForBrowser(entry: string) {
  return build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    globalName: "aenv",
    metafile: true,
    logLevel: "silent",
  });
}

describe.each([
  ["the SDK", join(here, "index.ts")],
  ["the contract", contract],
])("%s in a browser", (_, entry) => {
  it("is bundled without modules of Node", async () => {
    const { metafile } = await bundleForBrowser(entry);
    const inputs = Object.keys(metafile.inputs);
    expect(inputs.filter((path) => path.includes("undici") || path.endsWith("transport/node.ts"))).toEqual([]);
    const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
    expect(imports.filter(({ external, path }) => external || path.startsWith("node:"))).toEqual([]);
  });
});

it("only the Node transport imports modules of Node", async () => {
  for (const folder of [here, join(here, "adapters"), join(here, "transport"), join(here, "../../contract/src")]) {
    for (const file of (await readdir(folder)).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))) {
      if (file === "node.ts") continue;
      expect(await readFile(join(folder, file), "utf8"), file).not.toMatch(/from "(?:node:|undici)/);
    }
  }
});

it("the bundle calls a tool with only the globals of a browser", async () => {
  await using server = await httpServer(({ path, json }, response) => {
    if (path === "/health") return sendJson(response, { success: true, data: { status: "healthy" } });
    return sendJson(response, { jsonrpc: "2.0", id: json.id, result: { content: [{ type: "text", text: "hi" }] } });
  });
  const { outputFiles } = await bundleForBrowser(join(here, "index.ts"));
  const page = {
    fetch,
    AbortController,
    AbortSignal,
    TextDecoder,
    TextEncoder,
    URL,
    URLSearchParams,
    crypto,
    performance,
    setTimeout,
    clearTimeout,
  };
  const script = `${outputFiles[0]?.text}; new aenv.Environment("page", { instanceUrl: ${JSON.stringify(server.url)} }).callTool("greet", {})`;
  const result = await runInNewContext(script, { ...page, globalThis: page });
  expect(result.text).toBe("hi");
});
