import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { temporaryTree } from "@aenv/testing";
import Database from "better-sqlite3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../memory/store.ts";
import { photograph, play } from "./fixtures/play.ts";
import { SqliteStore } from "./store.ts";

const writer = fileURLToPath(new URL("fixtures/writer.ts", import.meta.url));

describe("a process killed while it writes", () => {
  it("leaves all finished changes, at most one more, and an intact file", { timeout: 60_000 }, async () => {
    using tree = temporaryTree();
    const path = `${tree.path}/server.db`;
    const model = new MemoryStore();
    let played = 0;
    for (const changes of fc.sample(fc.integer({ min: 1, max: 1500 }), 6)) {
      const finished = await writeAndDie(path, played, changes);
      expect(finished).toBeGreaterThanOrEqual(changes);
      for (let n = played; n < played + finished; n++) await play(model, n);
      played += finished;

      const store = SqliteStore.open(path);
      const found = await photograph(store);
      await store.close();
      const expected = await photograph(model);
      if (JSON.stringify(found) !== JSON.stringify(expected)) {
        await play(model, played);
        played += 1;
      }
      expect(found).toEqual(await photograph(model));

      const db = new Database(path);
      expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
      db.close();
    }
  });
});

/** The number of changes a writer reported before it was killed, which happens after the given number. */
async function writeAndDie(path: string, first: number, changes: number): Promise<number> {
  const child = spawn(process.execPath, [writer, path, String(first)], { stdio: ["ignore", "pipe", "inherit"] });
  const exit = once(child, "exit");
  let lines = 0;
  try {
    for await (const _ of createInterface({ input: child.stdout })) {
      lines += 1;
      if (lines === changes) child.kill("SIGKILL");
    }
  } finally {
    child.kill("SIGKILL");
    await exit;
  }
  return lines;
}
