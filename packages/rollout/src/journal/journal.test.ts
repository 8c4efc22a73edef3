import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compressJournal, Journal, readJournal } from "./journal.ts";
import { writeLine } from "./line.ts";

describe("a journal", () => {
  let tree: Tree;
  let path: string;
  beforeEach(() => {
    tree = temporaryTree();
    path = join(tree.path, "journal.jsonl");
  });
  afterEach(() => tree[Symbol.dispose]());

  async function records(): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const { record } of readJournal(path)) found.push(record);
    return found;
  }

  it("gives back what was appended, in order, also while it is open", async () => {
    await using journal = await Journal.open(path);
    await Promise.all([1, 2, 3].map((n) => journal.append({ n })));
    expect(await records()).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  it("goes on after a crash in the middle of a line, wherever that was", async () => {
    const lines = [writeLine({ n: 1, text: "é\n" }), writeLine({ n: 2 })];
    const whole = Buffer.from(lines.join(""));
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: whole.length }), async (length) => {
        writeFileSync(path, whole.subarray(0, length));
        const before: unknown[] = [];
        await using journal = await Journal.open(path, (record) => before.push(record));
        await journal.append({ n: 3 });
        const complete = [{ n: 1, text: "é\n" }, { n: 2 }].slice(
          0,
          length === whole.length ? 2 : length >= Buffer.byteLength(lines[0] as string) ? 1 : 0,
        );
        expect(before).toEqual(complete);
        expect(await records()).toEqual([...complete, { n: 3 }]);
      }),
    );
  });

  it("refuses a file that is damaged in the middle, with the line", async () => {
    writeFileSync(path, `${writeLine({ n: 1 })}{"n":2}\n${writeLine({ n: 3 })}`);
    await expect(records()).rejects.toMatchObject({ code: "store.damaged", message: expect.stringContaining("line 2") });
    await expect(Journal.open(path)).rejects.toMatchObject({ code: "store.damaged" });
  });

  it("is read the same when it is compressed", async () => {
    const journal = await Journal.open(path);
    for (let n = 0; n < 100; n++) void journal.append({ n, text: "again and again" });
    await journal.close();
    const before = await records();
    const size = readFileSync(path).length;
    await compressJournal(path);
    expect(await records()).toEqual(before);
    expect(readFileSync(`${path}.gz`).length).toBeLessThan(size / 2);
  });

  it("keeps its records when it is compressed again after a crash", async () => {
    const journal = await Journal.open(path);
    await journal.append({ n: 1 });
    await journal.close();
    await compressJournal(path);
    await compressJournal(path);
    expect(await records()).toEqual([{ n: 1 }]);
  });

  it("is empty where there is no file", async () => {
    expect(await records()).toEqual([]);
  });

  it("leaves out an unfinished last line while another process writes it", async () => {
    writeFileSync(path, writeLine({ n: 1 }));
    appendFileSync(path, writeLine({ n: 2 }).slice(0, 5));
    expect(await records()).toEqual([{ n: 1 }]);
  });
});
