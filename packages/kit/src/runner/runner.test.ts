import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Files, type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const runnerFile = fileURLToPath(new URL("./start.js", import.meta.url));
const kit = new URL("../index.ts", import.meta.url).href;

/** A bundle as `aenv build` creates it, but with the kit of this repository. */
const bundle = {
  "main.js": `
    import { defineEnvironment, serve } from ${JSON.stringify(kit)};
    const greeting = process.env.GREETING ?? "nothing";
    export const name = "shop";
    export const version = "1.2.0";
    export const definition = defineEnvironment({
      setup: () => ({ sold: 0 }),
      tools: [{ name: "sell", run: (_, { state }) => greeting + " " + ++state.sold }],
      functions: [{ name: "mark", run: () => process.env.AENV_SANDBOX }, {
        name: "work",
        run: () => { console.log("working"); return new Promise((resolve) => process.once("SIGTERM", () => setImmediate(resolve, "done"))); },
      }],
    });
    export const serveOn = (server, options) => serve(definition, { first: null, ...options, name, version, server });
  `,
};

interface Running {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  readonly lines: string[];
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

describe("the blank runner", () => {
  let tree: Tree;
  const ends: (() => void)[] = [];

  beforeEach(() => {
    tree = temporaryTree({ "sandbox/README": "", ...inFolder("bundle", bundle) });
  });
  afterEach(() => {
    for (const end of ends.splice(0)) end();
    tree[Symbol.dispose]();
  });

  async function start(...args: string[]): Promise<Running> {
    const socketPath = join(tree.path, "sandbox/s");
    // The tests' own folder for compiled code would be used instead of the given one.
    const { NODE_COMPILE_CACHE: _, ...own } = process.env;
    const env = { ...own, AENV_SANDBOX: "the engine's mark" };
    const child = spawn(process.execPath, [runnerFile, "--socket", socketPath, ...args], { env, stdio: ["ignore", "pipe", "inherit"] });
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    ends.push(() => {
      agent.destroy();
      child.kill("SIGKILL");
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const exit = once(child, "exit").then(([code]) => code as number | null);
    const ask = (method: string, path: string, body?: unknown) => answerOf({ socketPath, agent, method, path }, body);
    await expect.poll(() => ask("GET", "/health").catch(() => null), { interval: 5, timeout: 10_000 }).toMatchObject({ status: 503 });
    return { child, exit, lines, ask };
  }

  function bind(running: Running, variables: Record<string, string> = {}, folder = join(tree.path, "bundle")) {
    return running.ask("POST", "/bind", { folder, variables });
  }

  it("passes the engine's marker on to its children, whatever the variables are", async () => {
    const running = await start();
    expect(await bind(running, { AENV_SANDBOX: "forged" })).toMatchObject({ status: 200 });
    expect(await running.ask("POST", "/env-instance", { id: "a" })).toMatchObject({ status: 200 });
    expect(await running.ask("POST", "/env-instance/a/functions/mark", {})).toMatchObject({ body: { data: "the engine's mark" } });
  });

  it("listens at once, and is unhealthy until it is bound", async () => {
    const running = await start();
    const blank = { status: 503, body: { success: false, error: "blank", errorInfo: { code: "environment.unhealthy", retryable: true } } };
    expect(await running.ask("GET", "/health")).toEqual(blank);
    expect(await running.ask("POST", "/env-instance", {})).toEqual(blank);
  });

  it("serves the environment of the bundle, and sets its variables before any of its code runs", async () => {
    const running = await start();
    expect(await bind(running, { GREETING: "sold" })).toEqual({
      status: 200,
      body: { success: true, data: { name: "shop", version: "1.2.0" } },
    });
    expect(await running.ask("GET", "/env-instance/list")).toMatchObject({ status: 200, body: { data: { items: [] } } });
    for (const id of ["a", "b"]) {
      expect(await running.ask("POST", "/env-instance", { id })).toMatchObject({ status: 200, body: { data: { id, status: "Running" } } });
      expect(await running.ask("GET", `/env-instance/${id}/health`)).toMatchObject({ status: 200 });
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "sell", arguments: {} } };
      const { body } = await running.ask("POST", `/env-instance/${id}/mcp`, call);
      expect(body).toMatchObject({ result: { content: [{ type: "text", text: "sold 1" }] } });
    }
  });

  it("serves the same when it is bound in advance", async () => {
    const running = await start();
    expect(await running.ask("POST", "/bind", { folder: join(tree.path, "bundle"), isAhead: true })).toMatchObject({ status: 200 });
    expect(await running.ask("GET", "/env-instance/list")).toMatchObject({ status: 200, body: { data: { items: [] } } });
    expect(await running.ask("POST", "/env-instance", { id: "a" })).toMatchObject({ status: 200, body: { data: { status: "Running" } } });
  });

  it("answers requests with any Host header, since the gateway checks it", async () => {
    const running = await start();
    await bind(running);
    const socketPath = join(tree.path, "sandbox/s");
    const headers = { host: "environments.example.org", origin: "https://example.org" };
    expect(await answerOf({ socketPath, method: "GET", path: "/env-instance/list", headers })).toMatchObject({ status: 200 });
  });

  it("can be bound only once", async () => {
    const running = await start();
    const answers = await Promise.all([bind(running), bind(running)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await bind(running)).toMatchObject({ status: 409, body: { success: false, errorInfo: { code: "sandbox.bound" } } });
    expect(await running.ask("GET", "/env-instance/list")).toMatchObject({ status: 200 });
  });

  it.each([
    ["is not JSON", "{", /JSON/],
    ["names no folder", {}, /'folder' must be an absolute path/],
    ["names a folder that depends on where one stands", { folder: "bundle" }, /absolute path, not "bundle"/],
    [
      "has a variable whose name contains '='",
      { folder: "/", variables: { "A=B": "1" } },
      /'A=B' or its value is not valid for an environment variable/,
    ],
    [
      "has a variable that contains a NUL byte",
      { folder: "/", variables: { A: "a\0b" } },
      /'A' or its value is not valid for an environment variable/,
    ],
    ["has a variable that is no text", { folder: "/", variables: { PORT: 80 } }, /'PORT' must be a string, not 80/],
  ])("refuses a request that %s, and stays blank", async (_, body, words) => {
    const running = await start();
    expect(await running.ask("POST", "/bind", body)).toMatchObject({ status: 400, body: { error: expect.stringMatching(words) } });
    expect(await bind(running)).toMatchObject({ status: 200 });
  });

  it.each([
    ["throws", { "main.js": "\n\nthrow new Error('no stock');" }, /^main\.js:3: no stock$/],
    ["throws in another file", { "main.js": "import './a.js';", "a.js": "\nnull.price;" }, /^a\.js:2: Cannot read/],
    ["cannot be parsed", { "main.js": "export const name = 'shop';\nconst = 3;" }, /Unexpected token/],
    ["is not there", { "config.json": "{}" }, /main\.js/],
    ["knows nothing of waiting processes", { "main.js": "export default {};" }, /serveOn.*build it again/],
    ["fails to serve", { "main.js": "export const serveOn = () => { throw new Error('closed'); };" }, /^main\.js:1: closed$/],
  ])("reports the line, and exits, when the bundle's code %s", async (_, files, words) => {
    tree.write(inFolder("broken", files));
    const running = await start();
    const answer = await bind(running, {}, join(tree.path, "broken"));
    expect(answer).toMatchObject({
      status: 400,
      body: { success: false, error: expect.stringMatching(words), errorInfo: { code: "environment.invalid", retryable: false } },
    });
    expect(await running.exit).toBe(1);
  });

  it("exits at POST /stop, blank or bound", async () => {
    const blank = await start();
    expect(await blank.ask("POST", "/stop")).toMatchObject({ status: 200 });
    expect(await blank.exit).toBe(0);
    const bound = await start();
    await bind(bound);
    expect(await bound.ask("POST", "/stop")).toMatchObject({ status: 200 });
    expect(await bound.exit).toBe(0);
  });

  it("lets running calls finish before it exits on a signal", async () => {
    const running = await start();
    await bind(running);
    await running.ask("POST", "/env-instance", { id: "a" });
    const working = running.ask("POST", "/env-instance/a/functions/work");
    await expect.poll(() => running.lines, { timeout: 5_000 }).toEqual(["working"]);
    running.child.kill("SIGTERM");
    expect(await working).toEqual({ status: 200, body: { success: true, data: "done" } });
    expect(await running.exit).toBe(0);
  });

  it("exits when its sandbox's folder is removed", async () => {
    const running = await start();
    await bind(running);
    rmSync(join(tree.path, "sandbox"), { recursive: true });
    expect(await running.exit).toBe(0);
  });

  it("exits when the process that it ends with has ended, also if that was before it started", async () => {
    const running = await start("--ends-with", String(await endedPid()));
    expect(await running.exit).toBe(0);
  });

  it("goes on while the process that it ends with runs, whichever process has started it", async () => {
    const running = await start("--ends-with", String(process.ppid));
    const { port } = await freePort();
    const later = spawn(
      process.execPath,
      [runnerFile, "--host", "127.0.0.1", "--port", String(port), "--ends-with", String(await endedPid())],
      { stdio: "ignore" },
    );
    // The check of the later one, which has an end, is after that of the first.
    await once(later, "exit");
    expect(await running.ask("GET", "/health")).toMatchObject({ status: 503, body: { error: "blank" } });
  });

  it("keeps compiled code for the next process in the given cache folder", async () => {
    const cache = join(tree.path, "cache");
    const running = await start("--compile-cache", cache);
    await bind(running);
    await expect.poll(() => existsSync(cache) && readdirSync(cache, { recursive: true }).length, { timeout: 5_000 }).toBeGreaterThan(5);
  });

  it("listens on an address instead of a socket file", async () => {
    const { port } = await freePort();
    const child = spawn(process.execPath, [runnerFile, "--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" });
    ends.push(() => child.kill("SIGKILL"));
    const ask = () => answerOf({ host: "127.0.0.1", port, method: "GET", path: "/health" }).catch(() => null);
    await expect.poll(ask, { interval: 5, timeout: 10_000 }).toMatchObject({ status: 503, body: { error: "blank" } });
  });

  it.each([
    ["refuses programs of its own sandbox on an address", {}, 403],
    ["takes them where the operator allows it", { AENV_OWN_CONNECTIONS: "allow" }, 503],
  ])("%s", async (_, variables, status) => {
    const { port } = await freePort();
    const env = { ...process.env, ...variables };
    const child = spawn(process.execPath, [runnerFile, "--host", "0.0.0.0", "--port", String(port)], { env, stdio: "ignore" });
    ends.push(() => child.kill("SIGKILL"));
    const ask = (method: string, path: string) => answerOf({ host: "127.0.0.1", port, method, path }, method === "POST" ? {} : undefined);
    await expect.poll(() => ask("GET", "/health").catch(() => null), { interval: 5, timeout: 10_000 }).toMatchObject({ status });
    for (const path of ["/bind", "/episode/oracle", "/task/reset", "/env-instance"])
      expect([path, (await ask("POST", path)).status], path).toEqual([path, path === "/bind" && status === 503 ? 400 : status]);
    expect(child.exitCode).toBeNull();
  });

  it("names the missing option", async () => {
    const child = spawn(process.execPath, [runnerFile], { stdio: ["ignore", "ignore", "pipe"] });
    const [[text], [code]] = await Promise.all([once(child.stderr, "data"), once(child, "exit")]);
    expect(String(text)).toContain("--socket <path>");
    expect(code).toBe(2);
  });
});

async function endedPid(): Promise<number | undefined> {
  const ended = spawn(process.execPath, ["-e", ""]);
  await once(ended, "exit");
  return ended.pid;
}

async function freePort(): Promise<AddressInfo> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return address;
}

function inFolder(folder: string, files: Files): Files {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));
}

function answerOf(options: object, body?: unknown): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        ...options,
        headers: { accept: "application/json, text/event-stream", "content-type": "application/json", ...(options as Headed).headers },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        response.on("error", reject).on("end", () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
      },
    );
    asking.on("error", reject);
    asking.end(typeof body === "string" ? body : body === undefined ? undefined : JSON.stringify(body));
  });
}

interface Headed {
  readonly headers?: Record<string, string>;
}
