import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ProcessRow } from "../host/process-table.ts";
import { relatedProcesses } from "./related-processes.ts";

function row(pid: number, more: Partial<ProcessRow> = {}): ProcessRow {
  return { pid, start: `s${pid}`, parent: 1, session: 1, ...more };
}

const leader = { pid: 10, start: "s10" };
const program = row(10, { session: 10 });
const found = (all: readonly ProcessRow[], more: Partial<Parameters<typeof relatedProcesses>[1]> = {}) =>
  relatedProcesses(all, { leader, known: [], marked: [], ...more })
    .map(({ pid }) => pid)
    .sort((one, other) => one - other);

describe("the processes of a sandbox without a control group", () => {
  it("are its session, its descendants, what carries its mark and what was seen before, with their descendants", () => {
    const all = [
      row(1, { parent: 0 }),
      program,
      row(11, { session: 10 }),
      row(12, { parent: 10, session: 12 }),
      row(13, { parent: 12, session: 13 }),
      row(14),
      row(15, { parent: 14 }),
      row(16),
      row(17),
    ];
    expect(found(all, { marked: [14], known: [{ pid: 16, start: "s16" }] })).toEqual([10, 11, 12, 13, 14, 15, 16]);
  });

  it("are still its session's after the program itself is gone", () => {
    expect(found([row(11, { session: 10 }), row(12)])).toEqual([11]);
  });

  it("are none of those of a later process with the program's number", () => {
    expect(found([row(10, { start: "later", session: 10 }), row(11, { session: 10 }), row(12, { parent: 10 })])).toEqual([]);
  });

  it("are none that only has the number of one that was seen before", () => {
    expect(found([program, row(16, { start: "later" })], { known: [{ pid: 16, start: "s16" }] })).toEqual([10]);
  });

  it("never include a process that has no tie to it", () => {
    const rows = fc.uniqueArray(
      fc.record({ pid: fc.integer({ min: 2, max: 40 }), parent: fc.nat(40), session: fc.nat(40), start: fc.constantFrom("a", "b") }),
      { selector: ({ pid }) => pid },
    );
    fc.assert(
      fc.property(rows, fc.array(fc.integer({ min: 2, max: 40 }), { maxLength: 3 }), (all, marked) => {
        const members = new Set(relatedProcesses(all, { leader: { pid: 10, start: "a" }, known: [], marked }).map(({ pid }) => pid));
        const isHeld = all.every(({ pid, start }) => pid !== 10 || start === "a");
        for (const { pid, parent, session } of all) {
          const isTied = marked.includes(pid) || (isHeld && (session === 10 || pid === 10)) || members.has(parent);
          expect(members.has(pid)).toBe(isTied);
        }
      }),
    );
  });
});
