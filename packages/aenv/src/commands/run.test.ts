import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Environment } from "@aenv/sdk";
import { type Files, scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { aenv, installedTree, launcher } from "../testing/cli.ts";
import { RunningCommand } from "../testing/command.ts";
import { EventProcess, plainEnv, runProcess } from "../testing/process.ts";

const code = (answer: string) => `import { registerTool, registerReward } from "aenvironment";
registerTool({ name: "ask", description: "Answers." }, () => ${JSON.stringify(answer)});
registerReward({ name: "always" }, () => 1);
`;

function project(source: string, more: Files = {}): Tree {
  return installedTree({ "config.json": { name: "my-env", version: "1.0.0" }, "src/index.ts": source, ...more });
}

function run(tree: Tree, ...argv: string[]): EventProcess {
  return new EventProcess(process.execPath, [launcher, "run", "--port", "0", "--json", ...argv], { cwd: tree.path, env: plainEnv() });
}

async function ask(url: unknown): Promise<string> {
  return Environment.use("my-env", { instanceUrl: String(url) }, async (env) => (await env.callTool("ask")).text);
}

describe("run", { timeout: 60_000 }, () => {
  it("serves the project, prints its catalogue, and exits with 0 on Ctrl-C", async () => {
    using tree = project(code("one"));
    await using running = run(tree);
    const ready = await running.next("ready");
    expect(ready).toMatchObject({ name: "my-env", version: "1.0.0", tools: [{ name: "ask" }], rewards: [{ name: "always" }] });
    expect(ready.mcpUrl).toBe(`${ready.url}/mcp`);
    expect(await ask(ready.url)).toBe("one");
    expect(await running.stop("SIGINT")).toBe(0);
  });

  it("calls the models that the project declares, with the keys of its variables", async () => {
    await using model = await scriptedOpenAi(["go north"]);
    const models = { main: { baseUrl: model.baseUrl, name: "m", secret: "model-key" } };
    const asks = `import { defineEnvironment } from "aenvironment/kit";
const messages = [{ role: "user", content: "Where to?" }];
export default defineEnvironment({
  tools: [{ name: "ask", run: async (_, { model }) => (await model("main").complete({ messages })).message.content }],
});
`;
    using tree = project(asks, { "config.json": { name: "my-env", version: "1.0.0", deployConfig: { models } } });
    for (const env of [{ ...plainEnv(), MODEL_KEY: "key-of-the-test" }, plainEnv()]) {
      await using running = new EventProcess(process.execPath, [launcher, "run", "--port", "0", "--json"], { cwd: tree.path, env });
      const { url } = await running.next("ready");
      if ("MODEL_KEY" in env) expect(await ask(url)).toBe("go north");
      else await expect(ask(url)).rejects.toThrow("set the variable MODEL_KEY");
    }
    expect(model.requests[0]).toMatchObject({ headers: { authorization: "Bearer key-of-the-test" } });
  });

  it("serves the new version after a change, and keeps serving the old one while the new one does not load", async () => {
    using tree = project(code("one"));
    await using running = run(tree);
    const { url } = await running.next("ready");

    tree.write({ "src/index.ts": code("two") });
    expect(await running.next("reloaded")).toMatchObject({ files: ["src/index.ts"] });
    expect(await ask(url)).toBe("two");

    tree.write({ "src/index.ts": `${code("three")}const broken = ;\n` });
    expect(await running.next("failed")).toMatchObject({
      isStillServing: true,
      error: { problems: [{ file: join(tree.path, "src/index.ts"), line: 4, column: 16 }] },
    });
    expect(await ask(url)).toBe("two");

    tree.write({ "src/index.ts": code("four"), "config.json": { name: "my-env", version: "1.1.0" } });
    expect(await running.next("reloaded")).toMatchObject({ version: "1.1.0" });
    expect(await ask(url)).toBe("four");
  });

  it("says at once that a new version is not healthy, and why, and serves it when it is", async () => {
    using tree = project(code("one"));
    await using running = run(tree);
    const { url } = await running.next("ready");
    const health = `import { existsSync } from "node:fs";
import { registerHealth } from "aenvironment";
registerHealth(() => (existsSync("data.json") ? { status: "healthy" } : { status: "unhealthy", reason: "data.json is missing" }));
`;
    tree.write({ "src/index.ts": code("two") + health });
    expect(await running.next("unhealthy")).toMatchObject({
      reason: "unhealthy: data.json is missing",
      isStillServing: true,
    });
    expect(await ask(url)).toBe("one");
    tree.write({ "data.json": "{}" });
    await running.next("reloaded");
    expect(await ask(url)).toBe("two");
  });

  it("warns about a field that is probably misspelled, at the start and when config.json is saved", async () => {
    using tree = project(code("one"), { "config.json": { name: "my-env", version: "1.0.0", discription: "" } });
    await using running = run(tree);
    expect(await running.next("warning")).toMatchObject({ message: expect.stringContaining("did you mean description?") });
    await running.next("ready");
    tree.write({ "config.json": { name: "my-env", version: "1.0.0", taggs: [] } });
    expect(await running.next("warning")).toMatchObject({ message: expect.stringContaining("did you mean tags?") });
  });

  it("lists the tasks, and prints the address of the page", async () => {
    const tasks = Array.from({ length: 12 }, (_, at) => ({ id: `task-${at}`, instruction: "Count." }));
    using tree = project(
      `import { defineEnvironment } from "aenvironment";\nexport default defineEnvironment({ tasks: () => ${JSON.stringify(tasks)} });\n`,
    );
    await using running = new RunningCommand(["run", "--port", "0"], { cwd: tree.path, input: "open" });
    await running.prints(/Ctrl-C stops/);
    expect(running.stdout).toMatch(/12 tasks\n +task-0 +Count\.\n/);
    const [, rest = ""] = /2 more: aenv (.*)/.exec(running.stdout) ?? [];
    expect((await aenv(rest.split(" "))).stdout).toContain("task-11");
    const [, page = ""] = /Page +(http\S+)/.exec(running.stdout) ?? [];
    expect(await (await fetch(page)).text()).toContain("<h1>my-env");
    expect((await running.stop()).code).toBe(0);
  });

  it("serves an environment whose tasks cannot be listed yet, with one warning that has the reason", async () => {
    using tree = project(
      'import { defineEnvironment } from "aenvironment";\nexport default defineEnvironment({ tasks: () => { throw new Error("no data yet"); } });\n',
    );
    await using running = run(tree);
    expect(await running.next("warning")).toMatchObject({ message: "the tasks cannot be listed: no data yet" });
    expect(await running.next("ready")).toMatchObject({ tasks: [] });
  });

  it("prints the stack of an exception in a tool, which the agent does not get", async () => {
    using tree = project(`${code("one")}registerTool({ name: "fail" }, () => {\n  throw new Error("no luck");\n});\n`);
    await using running = run(tree);
    const { url } = await running.next("ready");
    const text = await Environment.use("my-env", { instanceUrl: String(url) }, async (env) => (await env.callTool("fail")).text);
    expect(text).toContain("no luck");
    expect(text).not.toContain("index.ts");
    expect(await running.next("output")).toMatchObject({ stream: "stderr", line: expect.stringContaining("tool 'fail' of instance") });
    expect(await running.next("output")).toMatchObject({ stream: "stderr", line: expect.stringContaining("src/index.ts:5:9") });
  });

  it("finishes a call that started before a change in the version it started in", async () => {
    const slow = (answer: string) => `import { writeFileSync, existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { dataPath, registerTool } from "aenvironment";
registerTool({ name: "ask" }, async () => {
  writeFileSync(dataPath("begun.log"), "");
  while (!existsSync(dataPath("end.log"))) await setTimeout(5);
  return ${JSON.stringify(answer)};
});
`;
    using tree = project(slow("old"));
    await using running = run(tree);
    const { url } = await running.next("ready");
    const answer = ask(url);
    await expect.poll(() => readFileSync(join(tree.path, "begun.log"), "utf8")).toBe("");
    tree.write({ "src/index.ts": slow("new") });
    await running.next("reloaded");
    tree.write({ "end.log": "" });
    expect(await answer).toBe("old");
    expect(await ask(url)).toBe("new");
  });

  it("reports a crash, answers clients with it, and restarts at the next change", async () => {
    using tree = project(`${code("one")}registerTool({ name: "die" }, () => void setImmediate(() => process.exit(7)));\n`);
    await using running = run(tree);
    const { url } = await running.next("ready");
    await Environment.use("my-env", { instanceUrl: String(url) }, (env) => env.callTool("die"));
    expect(await running.next("crashed")).toMatchObject({ how: "exit code 7" });
    const refused = await fetch(`${url}/health`);
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("crashed");
    tree.write({ "src/index.ts": code("two") });
    await running.next("reloaded");
    expect(await ask(url)).toBe("two");
  });

  it("passes on the output of the environment", async () => {
    using tree = project(`${code("one")}console.log("hello from the environment");\nprocess.stdout.write("half a line");\n`);
    await using running = run(tree);
    expect(await running.next("output")).toMatchObject({ stream: "stdout", line: "hello from the environment" });
    expect(await running.next("output")).toMatchObject({ stream: "stdout", line: "half a line" });
    await running.next("ready");
  });

  it("stops cleanly when the reader of its output is gone", async () => {
    using tree = project(code("one"));
    using temporary = temporaryTree();
    const env = { ...plainEnv(), TMPDIR: temporary.path };
    await using running = new EventProcess(process.execPath, [launcher, "run", "--port", "0", "--json"], { cwd: tree.path, env });
    await running.next("ready");
    running.child.stdout?.destroy();
    tree.write({ "src/index.ts": code("two") });
    await expect.poll(() => isAlive(running.child.pid as number), { timeout: 20_000 }).toBe(false);
    expect(readdirSync(temporary.path)).toEqual([]);
  });

  it("leaves no process behind when it is killed", async () => {
    using tree = project(`${code("one")}console.log(process.pid);\n`);
    // Files that it cannot delete itself are deleted with this folder.
    using temporary = temporaryTree();
    const env = { ...plainEnv(), TMPDIR: temporary.path };
    await using running = new EventProcess(process.execPath, [launcher, "run", "--port", "0", "--json"], { cwd: tree.path, env });
    const pid = Number((await running.next("output")).line);
    await running.next("ready");
    await running.stop("SIGKILL");
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
  });
});

describe("run ends with 1 and points at the line for", { timeout: 60_000 }, () => {
  const head = 'import { registerTool, defineEnvironment } from "aenvironment";\n';
  const cases: [what: string, source: string, line: number, message: string][] = [
    ["a syntax error", `${head}const x = ;\n`, 2, "Unexpected"],
    ["a package that is not installed", `${head}import x from "not-installed-anywhere";\nconsole.log(x);\n`, 2, "not-installed-anywhere"],
    ["a file that is not there", `${head}\nimport "./other.ts";\n`, 3, "./other.ts"],
    ["a name that is not exported", `${head}import { nothing } from "node:fs";\nnothing();\n`, 2, "nothing"],
    ["syntax that Node cannot strip", `${head}enum X { A }\n`, 2, "enum"],
    ["an error while loading", `${head}\nnull.x;\n`, 3, "null"],
    ["a tool registered twice", `${head}registerTool({ name: "a" }, () => 1);\nregisterTool({ name: "a" }, () => 1);\n`, 3, "twice"],
    [
      "an error in setup",
      `${head}const begin = () => {\n  throw new Error("no such table");\n};\nexport default defineEnvironment({ setup: begin });\n`,
      3,
      "no such table",
    ],
    ["a task listed twice", `${head}export default defineEnvironment({ tasks: () => [{ id: "a" }, { id: "a" }] });\n`, 2, "'a'"],
    [
      "a tool listed twice",
      `${head}const run = () => 1;\nexport default defineEnvironment({ tools: [\n  { name: "a", run },\n  { name: "a", run },\n] });\n`,
      5,
      "twice",
    ],
  ];
  it.each(cases)("%s", async (_, source, line, message) => {
    using tree = project(source);
    const { code, stdout, stderr } = await runProcess(process.execPath, [launcher, "run", "--port", "0"], {
      cwd: tree.path,
      env: plainEnv(),
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`✖ src/index.ts:${line}:`);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(new RegExp(`> +${line} │`));
  });
});

describe("run", () => {
  it("prints every wrong line of config.json at once", async () => {
    using tree = installedTree({
      "config.json": '{\n  "name": "My Env",\n  "version": 1,\n  "deployConfig": {\n    "ttl": "soon"\n  }\n}',
    });
    const { code, stderr } = await aenv(["run"], { cwd: tree.path });
    expect(code).toBe(1);
    expect(stderr).toContain("config.json:2:11 name is");
    expect(stderr).toContain("config.json:3:14 version is 1; it must be a string");
    expect(stderr).toContain("config.json:5:12 deployConfig.ttl");
  });

  it("prints the next step in a folder without a project", async () => {
    using tree = installedTree();
    const { code, stderr } = await aenv(["run"], { cwd: tree.path });
    expect(code).toBe(1);
    expect(stderr).toContain("aenv init my-env");
  });

  it("prints that the port is in use, and the next step", async () => {
    using tree = project(code("one"));
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    const { code: exit, stderr } = await aenv(["run", "--port", String(port)], { cwd: tree.path });
    other.close();
    expect(exit).toBe(1);
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is already in use`);
    expect(stderr).toContain("--port 0");
  });

  it("prints how to install the Inspector, and never downloads it", async () => {
    using tree = project(code("one"));
    const { code: exit, stderr } = await aenv(["run", "--inspector"], { cwd: tree.path });
    expect(exit).toBe(1);
    expect(stderr).toContain("npm install --save-dev @modelcontextprotocol/inspector");
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("run with a command in config.json", { timeout: 60_000 }, () => {
  const server = (answer: string) => `
    import { createServer } from "node:http";
    createServer((request, response) => response.end(process.env.envNAME + " ${answer}")).listen(process.env.PORT, process.env.HOST);
  `;
  const config = (runtime: object) => ({ "config.json": { name: "any", version: "1.0.0", runtime } });

  it("serves the program, and starts it again after a change", async () => {
    using tree = temporaryTree({ ...config({ command: ["node", "server.mjs"] }), "server.mjs": server("one") });
    await using running = run(tree);
    const { url } = await running.next("ready");
    const text = async () => (await fetch(String(url), { headers: { connection: "close" } })).text();
    expect(await text()).toBe("any one");
    tree.write({ "server.mjs": server("two") });
    await running.next("reloaded");
    expect(await text()).toBe("any two");
    expect(await running.stop("SIGINT")).toBe(0);
  });

  it.each([
    ["no-such-program", "cannot run 'no-such-program': no such program"],
    ["false", "the command 'false' ended before it answered (exit code 1)"],
  ])("says why it does not start: %s", async (program, message) => {
    using tree = temporaryTree(config({ command: [program] }));
    const { code, stderr } = await aenv(["run", "--port", "0"], { cwd: tree.path });
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
