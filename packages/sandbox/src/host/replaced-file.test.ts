import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { readReplacedFile, replaceFile } from "./replaced-file.ts";

describe("a file that is replaced", () => {
  it("has the last content, and nothing else is left", () => {
    using tree = temporaryTree();
    const path = join(tree.path, "record.json");
    expect(readReplacedFile(path)).toBeNull();
    writeFileSync(path, "first");
    for (const text of ["second", "third"]) {
      replaceFile(path, text);
      expect(readReplacedFile(path)).toBe(text);
    }
    expect(readdirSync(tree.path)).toHaveLength(2);
  });

  it("is whole for others that read it meanwhile", async () => {
    using tree = temporaryTree();
    const path = join(tree.path, "record.json");
    replaceFile(path, "0".repeat(500));
    const code = `
      const { replaceFile } = await import(${JSON.stringify(new URL("replaced-file.ts", import.meta.url).href)});
      for (let n = 0; n < 300; n++) replaceFile(${JSON.stringify(path)}, String(n % 10).repeat(500));
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    let isOver = false;
    const over = new Promise<void>((resolve, reject) => worker.once("exit", () => resolve()).once("error", reject));
    void over.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      expect(readReplacedFile(path)).toMatch(/^(\d)\1{499}$/);
      await new Promise(setImmediate);
    }
    await over;
  });
});
