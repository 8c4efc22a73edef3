import { spawn } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { LOAD_TIMEOUT_MS } from "../project/load-errors.ts";
import { readProject } from "../project/project.ts";
import { unpackArchive } from "./archive.ts";
import { bundleProject } from "./bundle.ts";

const echo = fileURLToPath(new URL("../../../../environments/echo", import.meta.url));

/** Runs the test with a process that has bound the bundle of a project; `bound` is what that was answered with. */
async function withBundle(project: string, test: (socketPath: string, bound: unknown) => Promise<void>): Promise<void> {
  using tree = temporaryTree();
  const folder = join(tree.path, "bundle");
  const { bytes } = await bundleProject(readProject(project, "/"), { timeoutMs: LOAD_TIMEOUT_MS, onOutput: () => undefined });
  await unpackArchive(bytes, folder);
  const socketPath = join(tree.path, "s");
  const runner = fileURLToPath(import.meta.resolve("@aenv/kit/runner"));
  const child = spawn(process.execPath, [runner, "--socket", socketPath], { stdio: "inherit" });
  try {
    const isWaiting = () => ask(socketPath, "/health", {}).catch(() => null);
    await expect.poll(isWaiting, { interval: 5, timeout: 10_000 }).toMatchObject({ error: "blank" });
    await test(socketPath, await ask(socketPath, "/bind", { folder }));
  } finally {
    child.kill("SIGKILL");
  }
}

it("serves when a waiting process imports it", () =>
  withBundle(echo, async (socketPath, bound) => {
    expect(bound).toMatchObject({ success: true, data: { name: "echo", version: "1.0.0" } });
    expect(await ask(socketPath, "/env-instance", { id: "a" })).toMatchObject({ success: true });
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } };
    expect(await ask(socketPath, "/env-instance/a/mcp", call)).toMatchObject({ result: { content: [{ type: "text", text: "hello" }] } });
  }));

it.each(["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"])(
  "checks arguments by JSON Schemas of the form %s",
  { timeout: 30_000 },
  async (form) => {
    const input = { $schema: form, type: "object", properties: { n: { type: "number", default: 2 } } };
    using tree = temporaryTree({
      "config.json": { name: "plain", version: "1.0.0" },
      "src/index.ts": `export default { tools: [{ name: "double", input: ${JSON.stringify(input)}, run: ({ n }) => 2 * n }] };`,
    });
    await withBundle(tree.path, async (socketPath, bound) => {
      expect(bound).toMatchObject({ success: true });
      expect(await ask(socketPath, "/env-instance", { id: "a" })).toMatchObject({ success: true });
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "double", arguments: {} } };
      expect(await ask(socketPath, "/env-instance/a/mcp", call)).toMatchObject({ result: { content: [{ text: "4" }] } });
    });
  },
);

it("includes files that register tools, even if package.json declares no side effects", async () => {
  using tree = temporaryTree({
    "config.json": { name: "shop", version: "1.0.0" },
    "package.json": { name: "shop", type: "module", sideEffects: false },
    "src/environment.ts":
      'import "./tools/ask.ts";\nimport { registerTool } from "aenvironment";\nregisterTool({ name: "buy" }, () => "bought");\n',
    "src/tools/ask.ts": 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => "asked");\n',
  });
  const { manifest } = await bundleProject(readProject(tree.path, "/"), { timeoutMs: LOAD_TIMEOUT_MS, onOutput: () => undefined });
  expect(manifest.tools.map(({ name }) => name).sort()).toEqual(["ask", "buy"]);
});

function ask(socketPath: string, path: string, body: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
    const sent = request({ socketPath, method: "POST", path, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", reject).on("end", () => resolve(JSON.parse(text)));
    });
    sent.on("error", reject).end(JSON.stringify(body));
  });
}
