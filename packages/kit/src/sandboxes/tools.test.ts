import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CallContext, defineEnvironment } from "../definition/definition.ts";
import type { TaskExecOptions, TaskSandbox } from "../definition/sandbox.ts";
import { linesText, replaceText, withoutMiddle } from "./tool-text.ts";
import { sandboxTools } from "./tools.ts";

/** Commands on this machine, in a folder. */
function machine(folder: string, seen: TaskExecOptions[] = []): TaskSandbox {
  const exec: TaskSandbox["exec"] = (command, options = {}) => {
    seen.push(options);
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<TaskSandbox["exec"]>>>();
    const [file = "", ...args] = typeof command === "string" ? ["sh", "-c", command] : command;
    const settings = { cwd: options.cwd ?? folder, timeout: options.timeoutMs ?? 0, killSignal: "SIGKILL" as const };
    const child = execFile(file, args, settings, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : null;
      const ending = { exitCode, signal: error?.signal ?? null, timedOut: error?.killed === true, outOfMemory: false, interruption: null };
      resolve({ ...ending, durationMs: 1, droppedBytes: 0, stdout, stderr });
    });
    // A command may end without reading its input.
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.stdin ?? "");
    return promise;
  };
  return { name: "task", image: null, exec } as unknown as TaskSandbox;
}

describe("tools over a sandbox", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "aenv-tools-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const call = async (name: string, input: object, options = {}, seen?: TaskExecOptions[]): Promise<string> => {
    const tool = sandboxTools(options).find((one) => one.name === name);
    const schema = tool?.input as { parse(input: object): unknown };
    const context = { sandbox: machine(folder, seen), state: { home: folder } } as unknown as CallContext<unknown>;
    return (await tool?.run(schema.parse(input), context as never)) as string;
  };

  it("run a command in a new shell, with both outputs in their order and the exit code", async () => {
    const command = "echo one; echo two >&2; echo $BASH_VERSION | cut -c1; exit 4";
    expect(await call("bash", { command })).toMatch(/^one\ntwo\n[3-9]\n\[exit code 4\]$/);
    expect(await call("bash", { command: "printf x" })).toBe("x\n[exit code 0]");
    expect(await call("bash", { command: "true" })).toBe("[exit code 0]");
    expect(await call("bash", { command: "kill -9 $$" })).toBe("[ended by SIGKILL]");
    expect(await call("bash", { command: "echo so far; sleep 60", timeout: 0.5 })).toBe(
      "so far\n[ended after 0.5 s, the timeout of this call]",
    );
  });

  it("write, read, edit and list files", async () => {
    expect(await call("write_file", { path: "a/b.txt", content: "one\ntwo\nthree\n" })).toBe("Wrote 14 bytes to 'a/b.txt'.");
    expect(await call("read_file", { path: "a/b.txt" })).toBe("one\ntwo\nthree\n");
    expect(await call("read_file", { path: "a/b.txt", first_line: 2, lines: 1 })).toBe("two\n[lines 2 to 2 of 3; go on with first_line 3]");
    expect(await call("edit_file", { path: "a/b.txt", old_text: "two", new_text: "2 $& $1" })).toBe("Replaced 1 occurrence in 'a/b.txt'.");
    expect(readFileSync(join(folder, "a/b.txt"), "utf8")).toBe("one\n2 $& $1\nthree\n");
    await call("write_file", { path: "-rf", content: "" });
    symlinkSync("b.txt", join(folder, "a/link"));
    expect(await call("list_files", { depth: 2 })).toBe("-rf\na/\na/b.txt\na/link");
    expect(await call("list_files", { path: "a" })).toBe("b.txt\nlink");
    expect(await call("read_file", { path: join(folder, "-rf") })).toBe("");
  });

  it("say what is wrong with a file", async () => {
    writeFileSync(join(folder, "bytes"), Buffer.from([0xff, 0x41]));
    await expect(call("read_file", { path: "none" })).rejects.toThrow("'./none' does not exist");
    await expect(call("read_file", { path: "a" })).rejects.toThrow("'./a' is a folder; list it with list_files");
    await expect(call("read_file", { path: "/dev/zero" })).rejects.toThrow("'/dev/zero' is not a regular file");
    await expect(call("write_file", { path: "a", content: "" })).rejects.toThrow("'./a' is a folder");
    await expect(call("write_file", { path: "bytes/x", content: "" })).rejects.toThrow(/bytes/);
    await expect(call("edit_file", { path: "bytes", old_text: "A", new_text: "B" })).rejects.toThrow("is not UTF-8 text");
    await expect(call("list_files", { path: "bytes" })).rejects.toThrow("'./bytes' is not a folder");
    await expect(call("read_file", { path: "a/b.txt", first_line: 9 })).rejects.toThrow("line 9 does not exist; the file has 3 lines");
  });

  it("take their settings as values or from the call", async () => {
    const seen: TaskExecOptions[] = [];
    const options = {
      cwd: ({ state }: CallContext<{ home: string }>) => `${state.home}/a`,
      user: "app",
      env: { A: "1" },
      timeoutMs: 9_000,
    };
    expect(await call("bash", { command: "pwd" }, options, seen)).toContain(`${folder}/a\n`);
    expect(await call("read_file", { path: "b.txt" }, options, seen)).toContain("three");
    const expected = { cwd: `${folder}/a`, user: "app", env: { A: "1" }, timeoutMs: 9_000 };
    expect(seen).toMatchObject([expected, expected]);
    await call("bash", { command: "true", timeout: 5 }, { user: () => undefined }, seen);
    expect(seen[2]).toEqual({ timeoutMs: 5_000 });
  });

  it("stand beside an environment's own tools", () => {
    const { tools } = defineEnvironment({
      setup: () => ({ folder: "/repo" }),
      tools: [...sandboxTools<{ folder: string }>({ cwd: ({ state }) => state.folder }), { name: "submit", run: () => "done" }],
    });
    expect(tools?.map(({ name }) => name)).toEqual(["bash", "read_file", "write_file", "edit_file", "list_files", "submit"]);
  });
});

describe("texts of tools", () => {
  it("say what is missing in the middle", () => {
    expect(withoutMiddle("abc", 3)).toBe("abc");
    expect(withoutMiddle("abcdefgh", 4)).toBe("ab\n[... 4 bytes left out ...]\ngh");
    expect(withoutMiddle("abcd", 10, 7)).toBe("ab\n[... 7 bytes left out ...]\ncd");
  });

  it("show at least one line, and never too much of it", () => {
    expect(linesText("", 1, 10)).toBe("");
    expect(linesText("x".repeat(200_000), 1, 10).length).toBeLessThan(65_000);
    expect(linesText("a\nb", 2, 1)).toBe("b\n[lines 2 to 2 of 2]");
  });

  it("replace one occurrence, or all if asked to", () => {
    expect(() => replaceText("a a", "a", "b", false)).toThrow("occurs 2 times");
    expect(replaceText("a a", "a", "b", true)).toEqual({ text: "b b", count: 2 });
  });
});
