import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const kit = new URL("../index.ts", import.meta.url).href;
const begin = `import { defineEnvironment } from ${JSON.stringify(kit)};\n`;

const key = randomBytes(32);
const digest = createHash("sha256").update(key).digest("hex");

interface Told {
  readonly events: readonly Record<string, unknown>[];
  readonly stderr: string;
}

/** Runs a project until it is served or has failed, and returns what the process printed. */
async function run(
  source: string,
  ask: (url: string) => Promise<unknown> = async () => {},
  variables: Readonly<Record<string, string>> = {},
): Promise<Told & { readonly file: string }> {
  using tree = temporaryTree({ "config.json": { name: "shop", version: "1.0.0" }, "src/index.ts": source });
  const child = spawn(process.execPath, [main, tree.path, "--port", "0"], {
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const events: Record<string, unknown>[] = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", async (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) events.push(JSON.parse(line) as Record<string, unknown>);
    const ready = events.find(({ event }) => event === "ready");
    if (ready === undefined || events.length > 1) return;
    await ask(String(ready.url));
    child.kill("SIGTERM");
  });
  await once(child, "close");
  return { events, stderr, file: `${tree.path}/src/index.ts` };
}

describe("a process with an environment", () => {
  it("writes the stack of a tool's exception to standard error", async () => {
    const source = `${begin}
      export default defineEnvironment({ tools: [{ name: "fail", run: () => {
        throw new Error("boom");
      } }] });`;
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "fail", arguments: {} } });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const { events, stderr } = await run(source, (url) => fetch(`${url}/mcp`, { method: "POST", headers, body: call }));
    expect(events.map(({ event }) => event)).toEqual(["ready", "stopping"]);
    expect(stderr).toMatch(/^tool 'fail' of instance 'default' failed: Error: boom\n {4}at .*src\/index\.ts:4:/);
  });

  it.each<[string, string, number, string]>([
    ["top-level code", `${begin}\nconst shop: any = null;\nshop.open();\n`, 4, "Cannot read properties of null"],
    [
      "a wrong call of the kit",
      `import { registerTool } from ${JSON.stringify(kit)};\n\nregisterTool({ name: "x" }, 5 as never);\n`,
      3,
      "needs a handler function",
    ],
    [
      "setup",
      `${begin}\nexport default defineEnvironment({\n  setup: () => {\n    throw new Error("no stock");\n  },\n});\n`,
      5,
      "setup of 'shop' failed: no stock",
    ],
    [
      "tasks with the same id",
      `${begin}\n\nexport default defineEnvironment({ tasks: () => [{ id: "a" }, { id: "b" }, { id: "a" }] });\n`,
      4,
      "tasks 1 and 3 have the same id 'a'",
    ],
    ["a mistyped option", `${begin}\nexport default defineEnvironment({ setUp: () => 1 } as never);\n`, 3, "did you mean 'setup'?"],
  ])("that cannot be served because of %s reports the file and the line", async (_, source, line, message) => {
    const { events, file } = await run(source);
    expect(events).toEqual([expect.objectContaining({ event: "failed", file, line, message: expect.stringContaining(message) })]);
  });

  it.each([
    ["takes", {}, 200],
    ["refuses, where the engine says so,", { AENV_OWN_CONNECTIONS: "refuse" }, 403],
    ["refuses, where the engine names the digest of its key,", { AENV_OWN_CONNECTIONS: `key:${digest}` }, 403],
    ["refuses, where that digest is damaged,", { AENV_OWN_CONNECTIONS: "key:" }, 403],
  ])("%s connections of programs beside it", async (_, variables, status) => {
    const asked: number[] = [];
    const ask = async (url: string) => asked.push((await fetch(`${url}/health`)).status);
    const { events } = await run(`${begin}export default defineEnvironment({});`, ask, variables);
    expect([events.map(({ event }) => event), asked]).toEqual([["ready", "stopping"], [status]]);
  });

  it("answers a connection that begins with the key of the engine", async () => {
    let answer = "";
    const ask = async (url: string) => {
      const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port) }).setEncoding("utf8");
      socket.write(`aenv-caller ${key.toString("base64url")}\nGET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      for await (const piece of socket) answer += piece;
    };
    await run(`${begin}export default defineEnvironment({});`, ask, { AENV_OWN_CONNECTIONS: `key:${digest}` });
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it("serves an environment whose tasks cannot be listed yet, and logs why", async () => {
    const source = `${begin}
      export default defineEnvironment({ tasks: () => { throw new Error("no data yet"); } });`;
    const { events, stderr } = await run(source);
    expect(events[0]).toMatchObject({ event: "ready" });
    expect(stderr).toMatch(/^tasks failed: Error: no data yet\n {4}at .*src\/index\.ts:3:/);
  });
});
