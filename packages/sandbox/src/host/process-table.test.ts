import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { identityOf, isRunning, type ProcessTable, ProcTable, PsTable } from "./process-table.ts";

const children: ReturnType<typeof spawn>[] = [];

function sleeper(variables: Record<string, string> = {}): number {
  const child = spawn("sleep", ["600"], { env: { PATH: process.env.PATH, ...variables } });
  children.push(child);
  return child.pid as number;
}

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

const hasProc = process.platform === "linux";
const tables: [string, () => ProcessTable][] = [["ps", () => new PsTable()]];
if (hasProc) tables.push(["/proc", () => new ProcTable()]);

describe.each(tables)("the process table from %s", (_, open) => {
  it("finds a process for as long as it runs", async () => {
    const table = open();
    const pid = sleeper();
    const { start } = table.find(pid) as { start: string };
    expect(isRunning(table, { pid, start })).toBe(true);
    expect(table.find(pid)?.start).toBe(start);
    expect(isRunning(table, { pid, start: "another" })).toBe(false);
    expect(identityOf(table, pid)).toEqual({ pid, start });
    const [child] = children;
    child?.kill("SIGKILL");
    await once(child as NonNullable<typeof child>, "exit");
    expect(isRunning(table, { pid, start })).toBe(false);
    expect(identityOf(table, pid)).toBeNull();
    expect(table.find(pid)).toBeNull();
  });

  it("measures memory", () => {
    const table = open();
    expect(table.memoryMbOf(process.pid)).toBeGreaterThan(10);
    expect(table.memoryMbOf(2 ** 22 + 1)).toBeNull();
  });
});

describe.runIf(hasProc)("searching by environment", () => {
  it("finds exactly the processes with the marker, also in concurrent searches", async () => {
    const table = new ProcTable();
    const [a, b, c] = [sleeper({ MARK: "a" }), sleeper({ MARK: "a" }), sleeper({ MARK: "ab" })];
    const found = await Promise.all(["MARK=a", "MARK=ab", "MARK=", "MARK=a"].map((entry) => table.findMarked(entry)));
    expect(found.map((pids) => pids.sort())).toEqual([[a, b].sort(), [c], [], [a, b].sort()]);
    const d = sleeper({ MARK: "d" });
    const search = table.findMarked("MARK=none");
    expect(await table.findMarked("MARK=d")).toEqual([d]);
    expect(await search).toEqual([]);
  });

  it("finds the processes that write a file, not those that read it", async () => {
    using tree = temporaryTree({ log: "" });
    const log = join(tree.path, "log");
    const writer = spawn("sh", ["-c", 'exec sleep 600 >> "$0"', log]);
    const reader = spawn("sh", ["-c", 'exec sleep 600 < "$0"', log]);
    children.push(writer, reader);
    await expect.poll(() => new ProcTable().findWriters(log)).toEqual([writer.pid]);
  });

  it("adds the memory of children to their parent", async () => {
    const parent = spawn("sh", ["-c", "sleep 600 & echo $!; wait"]);
    children.push(parent);
    const [printed] = await once(parent.stdout, "data");
    const child = Number(printed);
    try {
      const table = new ProcTable();
      expect(table.memoryMbOf(parent.pid as number)).toBeGreaterThan(table.memoryMbOf(child) as number);
    } finally {
      process.kill(child, "SIGKILL");
    }
  });
});
