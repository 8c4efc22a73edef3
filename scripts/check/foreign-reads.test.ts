import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { checkForeignReads } from "./foreign-reads.ts";
import type { ReadAllowance } from "./foreign-reads-allowed.ts";
import { formatProblem } from "./problem.ts";

const BODY = "use `readBoundedText`, `readBoundedBytes` or `boundedChunks` of @aenv/contract, within a limit of bytes";

/** Sources that read without a limit, and how the message begins. */
const planted: Readonly<Record<string, readonly [source: string, message: string]>> = {
  "the text of a response": ["const text = await response.text();", "reads a whole body without a limit"],
  "the JSON of a response": ["const value = (await (await fetch(url)).json()) as Answer;", "reads a whole body without a limit"],
  "the bytes of a response": ["const bytes = new Uint8Array(await response.arrayBuffer());", "reads a whole body without a limit"],
  "a form of a request": ["const form = await request.formData();", "reads a whole body without a limit"],
  "a stream by a consumer of Node": ['import { buffer } from "node:stream/consumers";', "reads a whole stream without a limit"],
  "chunks in an array": ["for await (const chunk of body) { count += 1; chunks.push(chunk); }", "collects a stream without a limit"],
  "chunks in an array, changed": [
    "for await (const chunk of body) if (chunk.length > 0) chunks.push(Buffer.from(chunk));",
    "collects a stream without a limit",
  ],
  "chunks in a text": ["for await (const piece of request) text += piece;", "collects a stream without a limit"],
  "chunks in a text by a decoder": [
    "for await (const piece of request) { text += decoder.decode(piece, { stream: true }); }",
    "collects a stream without a limit",
  ],
  "a stream as an array": ["const all = await Array.fromAsync(stream);", "collects a stream without a limit"],
  "chunks in a listener": ['stream.setEncoding("utf8").on("data", (text) => { all += text; });', "receives chunks in a listener"],
  "a web stream": ["const reader = response.body?.getReader();", "reads a web stream without a limit"],
  "a body through the helper without a limit": [
    "await readBoundedText(body, { maxBytes: Number.POSITIVE_INFINITY });",
    "turns off the limit of a read",
  ],
  "a program's output without a limit": ['execFile("ls", [], { maxBuffer: Infinity }, done);', "turns off the limit of a read"],
  "JSON of any depth": ["const value: unknown = JSON.parse(text);", "parses JSON of any depth and any number of values"],
  "messages of a WebSocket server": ["new WebSocketServer({ noServer: true });", "accepts WebSocket messages of any size"],
  "messages of a WebSocket client": ["const socket = new WebSocket(url);", "accepts WebSocket messages of any size"],
  "compressed bytes": ['import { gunzipSync } from "node:zlib";\ngunzipSync(bytes);', "unpacks compressed bytes to any size"],
  "a compressed stream": [
    'import { createBrotliDecompress } from "node:zlib";\nbody.pipe(createBrotliDecompress());',
    "unpacks compressed bytes to any size",
  ],
  lines: ['import { createInterface } from "node:readline";', "reads lines of any length"],
  "a delay": ['await setTimeout(Number(headers["retry-after"]) * 1_000);', "reads a delay that somebody else asks for"],
  "a delay of a Response": ['await pause(Number(response.headers.get("retry-after")));', "reads a delay that somebody else asks for"],
};

/** Sources that read within limits, or that do not read. */
const accepted: Readonly<Record<string, string>> = {
  "a body through the helper": "const text = await readBoundedText(response.body, { maxBytes: 1_024 });",
  "chunks through the helper": "for await (const chunk of boundedChunks(body, { maxBytes })) chunks.push(chunk);",
  "a loop that keeps something else": "for await (const chunk of body) { size += chunk.length; await write(chunk); }",
  "bytes that are dropped": 'request.on("data", () => {});',
  "JSON through the helper": "const value = parseBoundedJson(text);",
  "a file of this machine": 'JSON.parse(readFileSync(path, "utf8")); JSON.parse(await readFile(path, "utf8"));',
  "a copy of a value": "JSON.parse(JSON.stringify(value));",
  "a WebSocket server with a limit": "new WebSocketServer({ noServer: true, maxPayload: MAX });",
  "compressed bytes with a limit": 'import { gunzipSync } from "node:zlib";\ngunzipSync(bytes, { maxOutputLength: MAX });',
  "a program's output, which Node limits to 1 MiB": 'execFile("ls", [], done);',
  "a delay through the helper": 'const ms = parseRetryAfter(headers["retry-after"], Date.now());',
  "a delay that is sent": 'response.setHeader("retry-after", "1");',
  "words in comments and texts": '// JSON.parse(text)\nconst help = "response.text()";\nconst more = `calls .json()`;',
};

const check = async (source: string, allowed: readonly ReadAllowance[] = []) => {
  using tree = temporaryTree({ "packages/server/src/a.ts": `${source}\n` });
  return (await checkForeignReads(tree.path, allowed)).map(formatProblem);
};

describe("checkForeignReads", () => {
  it.each(Object.entries(planted))("reports %s", async (_, [source, message]) => {
    const line = source.split("\n").length;
    const found = await check(source);
    expect(found.length).toBeGreaterThan(0);
    for (const one of found)
      expect(one).toMatch(new RegExp(`^packages/server/src/a\\.ts:[1-${line}]: ${message}.*; .*(?:use|pass|state|split) `));
  });

  it.each(Object.entries(accepted))("accepts %s", async (_, source) => {
    expect(await check(source)).toEqual([]);
  });

  it("names what to call instead", async () => {
    expect(await check("\nconst text = await response.text();")).toEqual([
      `packages/server/src/a.ts:2: reads a whole body without a limit; ${BODY}`,
    ]);
  });

  it("looks at what users run, and not at tests", async () => {
    const source = "await response.text();\n";
    using tree = temporaryTree({
      "packages/server/src/a.test.ts": source,
      "packages/server/src/testing/a.ts": source,
      "packages/aenv/src/platform-tests/a.ts": source,
      "bench/src/a.ts": source,
      "scripts/a.ts": source,
      "packages/aenv/templates/agent/agent.ts": source,
      "packages/kit/src/a.ts": source,
      "environments/echo/src/a.ts": source,
      "examples/agent/agent.ts": source,
    });
    expect((await checkForeignReads(tree.path, [])).map(({ file }) => file)).toEqual([
      "environments/echo/src/a.ts",
      "examples/agent/agent.ts",
      "packages/aenv/templates/agent/agent.ts",
      "packages/kit/src/a.ts",
    ]);
  });

  it("accepts a read that is listed with a reason, and no other in its file", async () => {
    const allowed = [{ because: "own file", reads: { "packages/server/src/a.ts": ["JSON.parse(own)"] } }];
    expect(await check("const a = JSON.parse(own);\nconst b = JSON.parse(foreign);", allowed)).toEqual([
      "packages/server/src/a.ts:2: parses JSON of any depth and any number of values; use `parseBoundedJson` of @aenv/contract",
    ]);
  });

  it("reports an entry of the list that is no longer needed", async () => {
    const allowed = [{ because: "own file", reads: { "packages/server/src/a.ts": ["JSON.parse(own)"] } }];
    expect(await check("const a = parseBoundedJson(own);", allowed)).toEqual([
      "scripts/check/foreign-reads-allowed.ts: no unbounded read in packages/server/src/a.ts is on a line with 'JSON.parse(own)'; remove the entry",
    ]);
  });
});
