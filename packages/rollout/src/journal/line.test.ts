import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readLine, writeLine } from "./line.ts";

const records = fc
  .dictionary(
    fc.string().filter((key) => key !== "crc32" && key !== "__proto__"),
    fc.jsonValue(),
    { minKeys: 1 },
  )
  // JSON has no negative zero.
  .map((record) => JSON.parse(JSON.stringify(record)) as Record<string, unknown>);

describe("a line of the journal", () => {
  it("gives back the record that was written", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(readLine(writeLine(record).trimEnd())).toEqual({ kind: "record", record });
      }),
    );
  });

  it("is a line of JSON that other programs can read", () => {
    fc.assert(
      fc.property(records, (record) => {
        const line = writeLine(record);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(JSON.parse(line)).toMatchObject(record);
      }),
    );
  });

  it("is damaged when it is cut off anywhere", () => {
    fc.assert(
      fc.property(records, fc.nat(), (record, at) => {
        const line = writeLine(record).trimEnd();
        expect(readLine(line.slice(0, at % line.length)).kind).toBe("damaged");
      }),
    );
  });

  it("is damaged when a character of it changes", () => {
    fc.assert(
      fc.property(records, fc.nat(), (record, at) => {
        const line = writeLine(record).trimEnd();
        const position = at % line.length;
        const changed = line[position] === "x" ? "y" : "x";
        expect(readLine(line.slice(0, position) + changed + line.slice(position + 1)).kind).toBe("damaged");
      }),
    );
  });
});
