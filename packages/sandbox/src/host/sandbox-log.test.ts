import { appendFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SandboxLog } from "./sandbox-log.ts";

let tree: Tree;
let path: string;

beforeEach(() => {
  tree = temporaryTree({ log: "" });
  path = join(tree.path, "log");
});
afterEach(() => tree[Symbol.dispose]());

const never = new Promise(() => undefined);

function numbered(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, n) => `line ${from + n}\n`).join("");
}

async function collect(lines: AsyncIterable<string>, into: string[]): Promise<void> {
  for await (const line of lines) into.push(line);
}

describe("a sandbox's log", () => {
  it("returns the last lines, including an unfinished one", () => {
    const log = new SandboxLog(path, 1_000);
    appendFileSync(path, "one\ntwo\n\nthree");
    expect(log.tail(3)).toEqual(["two", "", "three"]);
    expect(new SandboxLog(join(tree.path, "none"), 1_000).tail(3)).toEqual([]);
  });

  it("keeps its newer half in whole lines when it is trimmed, and reads across the cut", () => {
    const log = new SandboxLog(path, 500);
    appendFileSync(path, numbered(0, 100));
    log.trim();
    expect(statSync(path).size).toBe(0);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(250);
    expect(readFileSync(`${path}.1`, "utf8")).toMatch(/^line \d+\n/);
    appendFileSync(path, numbered(100, 103));
    expect(log.tail(5)).toEqual(["line 98", "line 99", "line 100", "line 101", "line 102"]);
    log.trim();
    expect(statSync(path).size).toBeGreaterThan(0);
  });

  it("loses no line across a cut for a follower that keeps up", async () => {
    const log = new SandboxLog(path, 500);
    const leave = new AbortController();
    const seen: string[] = [];
    const following = collect(log.follow(leave.signal, never), seen);
    appendFileSync(path, numbered(0, 100));
    await expect.poll(() => seen.length).toBe(100);
    log.trim();
    appendFileSync(path, numbered(100, 300));
    await expect.poll(() => seen.length).toBe(300);
    expect(seen).toEqual(numbered(0, 300).trim().split("\n"));
    leave.abort();
    await following;
  });

  it("joins characters that arrive in two parts, and splits endless lines into pieces", async () => {
    const log = new SandboxLog(path, 1_000_000);
    const seen: string[] = [];
    let end: (value?: unknown) => void = () => undefined;
    const over = new Promise((resolve) => {
      end = resolve;
    });
    const following = collect(log.follow(new AbortController().signal, over), seen);
    const euro = Buffer.from("€\n");
    appendFileSync(path, euro.subarray(0, 1));
    appendFileSync(path, euro.subarray(1));
    await expect.poll(() => seen).toEqual(["€"]);
    appendFileSync(path, "x".repeat(200_000));
    await expect.poll(() => seen.length).toBeGreaterThan(1);
    appendFileSync(path, "the end");
    end();
    await following;
    expect(seen.slice(1).join("")).toBe(`${"x".repeat(200_000)}the end`);
  });
});
