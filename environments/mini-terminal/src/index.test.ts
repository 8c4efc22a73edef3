import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadEnvironment, type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

let sandbox: Served;
let env: Environment;

beforeAll(async () => {
  const { name, version, definition } = await loadEnvironment(fileURLToPath(new URL("..", import.meta.url)));
  sandbox = await serve(definition, { name, version, port: 0 });
}, 60_000);
afterAll(() => sandbox?.close());

beforeEach(async () => {
  env = await Environment.create("mini-terminal@1.0.1", { instanceUrl: sandbox.url });
  await env.reset({ task: null });
});
afterEach(() => env.release());

const execute = async (args: Record<string, unknown>) =>
  (await env.callTool("execute_command", args)).json<Record<string, unknown> & { output: [string, boolean] }>();

describe("the tool execute_command", { timeout: 60_000 }, () => {
  it("is that of the original, with one more argument", async () => {
    const tools = await env.listTools();
    expect(tools.map(({ name }) => name.split("/")[1])).toEqual(["execute_command", "read_file", "write_file", "edit_file", "list_files"]);
    expect(tools[0]).toMatchObject({
      name: "mini-terminal@1.0.1/execute_command",
      inputSchema: {
        required: ["command"],
        properties: { command: { type: "string" }, timeout: { type: "number", default: 60 }, session: { default: "main" } },
      },
    });
    for (const { description } of tools) expect(description).toMatch(/\.$/);
  });

  it("returns the original's fields, with the real exit code", async () => {
    expect(await execute({ command: "echo hello; (exit 4)" })).toEqual({
      output: ["hello\n", true],
      returncode: 4,
      exit_code: 4,
      timed_out: false,
      duration_ms: expect.any(Number),
    });
  });

  it("returns the output so far at the timeout, says so, and goes on", async () => {
    expect(await execute({ command: "x=1; echo before; sleep 50", timeout: 0.5 })).toMatchObject({
      output: ["before\n", false],
      returncode: 130,
      timed_out: true,
    });
    expect(await execute({ command: "echo $x" })).toMatchObject({ output: ["1\n", true] });
  });

  it("survives exit, and says that the shell is a new one", async () => {
    expect(await execute({ command: "exit 3" })).toMatchObject({
      output: ["", true],
      returncode: 3,
      note: expect.stringContaining("A new one"),
    });
    expect(await execute({ command: "echo here" })).toMatchObject({ output: ["here\n", true], returncode: 0 });
  });

  it("cuts a long output, and says how much is missing", async () => {
    const { output, cut_bytes } = await execute({ command: "seq 1 100000" });
    expect(output[0]).toMatch(/^1\n2\n3\n/);
    expect(output[0]).toMatch(/\n99999\n100000\n$/);
    expect(output[0]).toContain(`[... ${cut_bytes} bytes cut out ...]`);
    expect(output[0].length).toBeLessThan(70_000);
  });

  it("answers concurrent calls, each with its own output", async () => {
    const numbers = Array.from({ length: 20 }, (_, at) => at);
    const results = await Promise.all(numbers.map((n) => execute({ command: `sleep 0.0${n % 3}; echo ${n}; (exit ${n})` })));
    expect(results.map(({ output, returncode }) => [output[0], returncode])).toEqual(numbers.map((n) => [`${n}\n`, n]));
  });

  it.each([
    [{ command: "a\0b" }, "NUL"],
    [{ command: "true", timeout: 0 }, "timeout"],
    [{ command: "true", session: "../other" }, "session"],
    [{}, "command"],
  ])("names the invalid argument in %j", async (args, word) => {
    expect(await env.callTool("execute_command", args)).toMatchObject({ isError: true, text: expect.stringContaining(word) });
  });

  it("ends its command when the call is cancelled", async () => {
    const cancel = new AbortController();
    const call = env.callTool("execute_command", { command: "touch begun; sleep 50; touch reached" }, { signal: cancel.signal });
    call.catch(() => {});
    const begun = async () => (await execute({ command: "ls", session: "other" })).output[0];
    await expect.poll(begun, { timeout: 20_000 }).toContain("begun");
    cancel.abort();
    await expect(call).rejects.toThrow();
    expect(await execute({ command: "ls" })).toMatchObject({ output: ["begun\n", true] });
  });
});

describe("file tools", { timeout: 60_000 }, () => {
  const call = (name: string, args: Record<string, unknown>) => env.callTool(name, args);

  it("write, read, edit and list files of the working folder, which commands see too", async () => {
    expect((await call("write_file", { path: "a/b.txt", content: "one\ntwo\nthree\n" })).json()).toEqual({
      path: "a/b.txt",
      bytes: 14,
      created: true,
    });
    expect((await call("read_file", { path: "a/b.txt", first_line: 2, lines: 1 })).json()).toEqual({
      content: "two\n",
      first_line: 2,
      last_line: 2,
      total_lines: 3,
    });
    expect((await call("edit_file", { path: "a/b.txt", old_text: "two", new_text: "2 $& $1" })).json()).toEqual({
      path: "a/b.txt",
      replaced: 1,
    });
    expect((await execute({ command: "cd a; cat b.txt; ln -s b.txt link; mkdir empty" })).output[0]).toBe("one\n2 $& $1\nthree\n");
    expect((await call("list_files", { depth: 3 })).json()).toEqual({
      entries: [
        { path: "a", type: "folder" },
        { path: "a/b.txt", type: "file", bytes: 18 },
        { path: "a/empty", type: "folder" },
        { path: "a/link", type: "link" },
      ],
      is_complete: true,
    });
    expect((await call("list_files", { path: "a/empty" })).json()).toEqual({ entries: [], is_complete: true });
  });

  it("say what is wrong with a path or a text", async () => {
    await execute({ command: "mkdir folder; printf '\\xff' > binary; echo a > file; mkfifo pipe" });
    for (const [name, args, message] of [
      ["read_file", { path: "none" }, "'none' does not exist"],
      ["read_file", { path: "folder" }, "'folder' is a folder; list it with list_files"],
      ["read_file", { path: "binary" }, "'binary' is not UTF-8 text"],
      ["read_file", { path: "pipe" }, "'pipe' is not a regular file"],
      ["write_file", { path: "pipe", content: "" }, "'pipe' is not a regular file"],
      ["read_file", { path: "file", first_line: 9 }, "line 9 does not exist"],
      ["write_file", { path: "folder", content: "" }, "'folder' is a folder"],
      ["write_file", { path: "file/inner", content: "" }, "'file/inner' is not a folder, or is below a file"],
      ["edit_file", { path: "file", old_text: "b", new_text: "" }, "old_text does not occur"],
      ["list_files", { path: "file" }, "'file' is not a folder, or is below a file"],
    ] as const) {
      expect(await call(name, args), `${name} ${JSON.stringify(args)}`).toMatchObject({
        isError: true,
        text: expect.stringContaining(message),
      });
    }
  });
});

describe("an episode", { timeout: 60_000 }, () => {
  it("begins with the files of its task, and ends with all processes of the one before", async () => {
    const { output } = await execute({ command: "pwd; sleep 300 & echo $!" });
    const [folder = "", pid = ""] = output[0].split("\n");
    await env.reset({ task: "csv-totals", seed: 3 });
    await expect.poll(() => [existsSync(folder), existsSync(`/proc/${pid}`)], { timeout: 20_000 }).toEqual([false, false]);
    expect((await execute({ command: "ls" })).output[0]).toBe("sales.csv\n");
    expect(await env.score()).toMatchObject({ reward: 0 });
  });

  it("tells an agent of a rollout no times, and has a digest of its files and folders", async () => {
    await env.reset({ task: null, observationsOnly: true });
    const before = await env.episode.digest();
    expect(await execute({ command: "mkdir a && cd a" })).toEqual({ output: ["", true], returncode: 0, exit_code: 0, timed_out: false });
    const inside = await env.episode.digest();
    await execute({ command: "echo b > b" });
    expect(new Set([before, inside, await env.episode.digest()]).size).toBe(3);
    await execute({ command: "cd ..; rm -r a" });
    expect(await env.episode.digest()).toBe(before);
  });

  it("cannot be saved as a value, and says what can be done instead", async () => {
    await expect(env.snapshot()).rejects.toThrow("fidelity 'memory'");
    await expect(env.fork(1)).rejects.toThrow("fidelity 'memory'");
  });

  it("is healthy, with the names of its sessions", async () => {
    expect(await env.checkHealth()).toEqual({ success: true, data: { status: "healthy", sessions: ["main"] } });
  });
});
