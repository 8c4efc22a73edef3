import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { readBoundedText } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { publish, startPlatform } from "../../platform-tests/platform.ts";
import { aenv, repo } from "../../testing/cli.ts";

let tree: Tree;
beforeEach(() => {
  tree = temporaryTree({ "taken/file": "" });
});
afterEach(() => tree[Symbol.dispose]());

const small = join(repo, "packages/kit/src/mount/fixtures/vendor/server.js");
const mount = (argv: readonly string[], env = {}) =>
  aenv(["mount", "mcp", ...argv], { cwd: tree.path, env: { PATH: process.env.PATH, ...env } });
const read = (path: string) => readFileSync(join(tree.path, path), "utf8");

describe("aenv mount mcp with a file", { timeout: 120_000 }, () => {
  it("writes a project with the server as one file, its pinned tools, and an environment that is published and used", async () => {
    const { code, stdout, stderr } = await mount(["--name", "small", "--json", "--", "node", small]);
    expect(code, stderr).toBe(0);
    const said = JSON.parse(stdout);
    expect(said).toMatchObject({
      name: "small",
      server: { name: "small", version: "1.0.0" },
      resources: ["note://all"],
      prompts: ["greet"],
    });
    expect(JSON.parse(read("small/tools.json"))).toMatchObject({
      digest: said.digest,
      tools: [{ name: "note" }, { name: "notes" }, ...Array(10).fill({})],
    });
    expect(readdirSync(join(tree.path, "small/vendor"))).toEqual(["server.mjs"]);
    expect(JSON.parse(read("small/config.json"))).toMatchObject({
      buildConfig: { data: ["vendor"] },
      deployConfig: { taskSandboxes: { images: [] } },
    });

    await using platform = await startPlatform();
    const ref = await publish(platform, join(tree.path, "small"));
    const env = await Environment.create(ref, { systemUrl: platform.controlUrl });
    expect((await env.callTool("note", { text: "milk" })).text).toBe("noted");
    expect((await env.callTool("notes")).text).toBe("milk\n");
    expect(await env.callReward()).toBe(1);
    await env.reset();
    expect((await env.callTool("notes")).text).toBe("none");
    await expect(env.callTool("crash")).rejects.toMatchObject({ code: "sandbox.lost" });
    await expect(env.callReward()).rejects.toMatchObject({ code: "sandbox.lost" });
    await env.release();
  });

  it("is started with variables that were named, and secrets stay out of the project", async () => {
    const given = ["--env", "PLACE=here", "--secret", "TOKEN", "--", "node", small];
    expect(await mount(given)).toMatchObject({ code: 2, stderr: expect.stringContaining("the variable TOKEN is not set") });
    expect(await mount(given, { TOKEN: "very-secret" })).toMatchObject({ code: 0 });
    expect(JSON.parse(read("server/config.json")).deployConfig.secrets).toEqual({ TOKEN: "TOKEN" });
    expect(read("server/src/index.ts")).toContain(`"PLACE":"here","TOKEN":"${"$"}{TOKEN}"`);
    for (const file of ["config.json", "src/index.ts", "tools.json", "README.md"])
      expect(read(`server/${file}`)).not.toContain("very-secret");
  });

  it("that does not start is named with its last words, and nothing is written", async () => {
    const broken = join(tree.path, "broken.mjs");
    writeFileSync(broken, 'console.error("no licence key"); process.exit(1);');
    expect(await mount(["--", "node", broken])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no licence key[\s\S]*--env and --secret/),
    });
    expect(await mount(["--", "node", "missing.js"])).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no file") });
    expect(await mount(["--name", "taken", "--", "node", small])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is not empty"),
    });
    expect(await mount(["--", "docker", "run", "x"])).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot be mounted") });
    expect(readdirSync(tree.path).sort()).toEqual(["broken.mjs", "taken"]);
  });
});

describe("aenv mount mcp with a package of npm", { timeout: 120_000 }, () => {
  /** A package as npm installs it, with a script that must not run. */
  function pack(name: string, files: Readonly<Record<string, string>>): string {
    using folder = temporaryTree({
      "package.json": {
        name,
        version: "1.2.3",
        type: "module",
        bin: { [name]: "dist/index.js" },
        scripts: { postinstall: `node -e "require('fs').writeFileSync('${tree.path}/ran', '')"` },
      },
      "dist/index.js": `#!/usr/bin/env node\n${readFileSync(small, "utf8")}`,
      ...files,
    });
    execFileSync("npm", ["pack", "--silent", "--pack-destination", tree.path], { cwd: folder.path });
    return join(tree.path, `${name}-1.2.3.tgz`);
  }

  it("runs no script of it, pins its version, and bundles it", async () => {
    const { code, stdout, stderr } = await mount(["--json", "--", "npx", "-y", pack("tiny", { "README.md": "words" })]);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ name: "tiny", form: "one file, vendor/server.mjs" });
    expect(existsSync(join(tree.path, "ran"))).toBe(false);
    expect(readdirSync(join(tree.path, "tiny/vendor"))).toEqual(["server.mjs"]);
  });

  it("keeps the data files of the package where its modules look for them", async () => {
    const index = `import { readFileSync as read } from "node:fs";\nread(new URL("../data/words.txt", import.meta.url));\n${readFileSync(small, "utf8")}`;
    const { code, stdout, stderr } = await mount([
      "--json",
      "--",
      "npx",
      "-y",
      pack("tiny", { "data/words.txt": "words", "dist/index.js": index }),
    ]);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ form: "one file, vendor/server.mjs" });
    expect(read("tiny/vendor/package/data/words.txt")).toBe("words");
  });

  it("ships the installed folder for one with compiled modules, which is published too", async () => {
    const { code, stdout } = await mount(["--json", "--", "npx", "-y", pack("tiny", { "build/fast.node": "machine code" })]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { form: "the installed folder: it has compiled modules" }]);
    await using platform = await startPlatform();
    const env = await Environment.create(await publish(platform, join(tree.path, "tiny")), { systemUrl: platform.controlUrl });
    expect((await env.callTool("sum", { a: 1 })).text).toBe("2");
    await env.release();
  });
});

describe("aenv mount mcp with a URL", { timeout: 120_000 }, () => {
  it("asks for an allowance of a loopback address, and writes headers with the names of secrets", async () => {
    const heard: unknown[] = [];
    const server = createServer(async (request, response) => {
      const { id, method } = request.method === "POST" ? JSON.parse(await readBoundedText(request, { maxBytes: 10_000 })) : {};
      heard.push(request.headers.authorization);
      const tools = [{ name: "look", inputSchema: { type: "object" } }];
      const initialized = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "Far Away", version: "2" } };
      if (id === undefined) response.writeHead(202).end();
      else
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? initialized : { tools } }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
      expect(await mount([url])).toMatchObject({ code: 1, stderr: expect.stringMatching(/which is refused[\s\S]*--allow-private/) });
      const header = `authorization=Bearer ${"$"}{TOKEN}`;
      expect(await mount([url, "--allow-private", "--secret", "TOKEN", "--header", header], { TOKEN: "abc" })).toMatchObject({ code: 0 });
      expect([...new Set(heard)]).toEqual(["Bearer abc"]);
      const code = read("far-away/src/index.ts");
      expect(code).toContain(`headers: {"authorization":"Bearer ${"$"}{TOKEN}"}`);
      expect(code).toContain(`allowPrivate: ["127.0.0.1:`);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe("aenv mount a2a", { timeout: 120_000 }, () => {
  it("writes a project that talks to the agent, and names a card that leads to a private address", async () => {
    const heard: unknown[] = [];
    const server = createServer(async (request, response) => {
      const { port } = server.address() as AddressInfo;
      const path = request.url ?? "";
      const away = path.startsWith("/away/");
      if (path.endsWith("agent-card.json")) {
        const url = away ? "http://169.254.169.254/a2a" : `http://127.0.0.1:${port}/a2a`;
        const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
        const skills = [{ id: "sell", name: "Sell", description: "Sells things.", tags: ["shop"] }];
        response.end(
          JSON.stringify({ name: "The Shop", description: "Sells.", version: "1", capabilities: {}, skills, supportedInterfaces }),
        );
        return;
      }
      const { id, params } = JSON.parse(await readBoundedText(request, { maxBytes: 10_000 }));
      heard.push(params.message.parts);
      const message = {
        messageId: "m",
        role: "ROLE_AGENT",
        contextId: "c",
        parts: [{ text: `You said ${params.message.parts[0].text}.` }],
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result: { message } }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const run = (...argv: string[]) => aenv(["mount", "a2a", ...argv], { cwd: tree.path, env: { PATH: process.env.PATH } });
    try {
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect(await run(`${base}/shop/`)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/which is refused[\s\S]*--allow-private/),
      });
      expect(await run(`${base}/away/`, "--allow-private")).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/leads elsewhere: 169\.254/),
      });
      expect(await run("shop")).toMatchObject({ code: 2, stderr: expect.stringContaining("is no URL") });
      const { code, stdout, stderr } = await run(`${base}/shop/`, "--allow-private", "--json");
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        name: "the-shop",
        agent: "The Shop",
        protocol: "1.0",
        binding: "JSONRPC",
        skills: ["sell"],
      });
      expect(JSON.parse(read("the-shop/card.json"))).toMatchObject({
        digest: expect.stringMatching(/^sha256:/),
        card: { name: "The Shop" },
      });
      await using platform = await startPlatform();
      const env = await Environment.create(await publish(platform, join(tree.path, "the-shop")), { systemUrl: platform.controlUrl });
      expect((await env.callTool("chat", { message: "hello" })).text).toBe("You said hello.");
      expect(await env.callReward()).toBe(1);
      await env.release();
      expect(heard).toHaveLength(1);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
