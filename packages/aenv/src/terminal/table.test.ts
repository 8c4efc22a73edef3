import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { visible } from "./fit.ts";
import { bytesText, countText, facts, statusText, table, timeText, truncate } from "./table.ts";

const output = { colors: picocolors.createColors(false), isTty: false, columns: 100, write: () => {} };

describe("tables", () => {
  it("have one line below their titles", () => {
    const lines = table(
      ["a", "b"],
      [
        ["1", "2"],
        ["3", "4"],
      ],
      output,
    ).split("\n");
    expect(lines).toHaveLength(6);
    expect(lines.filter((line) => line.includes("├"))).toHaveLength(1);
  });

  it.each([40, 80])("are not wider than a terminal of %i columns, and keep their whole cells there", (columns) => {
    const colors = picocolors.createColors(true);
    const id = "mini-terminal-1.0.1-random-66f55a2a";
    const rows = [
      [colors.bold(id), "mini-terminal@1.0.1", colors.red("no task 'foo'; GET /task/list lists them all, and nothing else does")],
    ];
    rows.push(["长".repeat(60), "", "x"]);
    const shown = (isTty: boolean) =>
      visible(table(["run", "environment", "reason"], rows, { ...output, colors, isTty, columns })).split("\n");
    expect(Math.max(...shown(true).map((line) => line.length + (line.match(/长/g)?.length ?? 0)))).toBeLessThanOrEqual(columns);
    const cells = shown(true).map((line) =>
      line
        .split("│")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    const columnsOf = (at: number) => cells.map((row) => row[at] ?? "").join("");
    expect([columnsOf(0), columnsOf(1)]).toEqual([`run${id}${"长".repeat(60)}`, "environmentmini-terminal@1.0.1"]);
    // A file or another program gets each row in one line.
    expect(shown(false)).toHaveLength(6);
  });

  it("break words, and last of all the names in the first column, only where that is needed to fit", () => {
    const rows = [["probe-abcdefghijklmnopqrstuv", "probe@1.0.0", "Running", "2026-11-19 03:42:25"]];
    const lines = table(["instance", "environment", "status", "expires"], rows, { ...output, isTty: true, columns: 72 }).split("\n");
    expect(lines.slice(3, -1).map((line) => line.replaceAll(/\s+/g, " "))).toEqual([
      "│ probe-abcdefghijklmnopqrstuv │ probe@1.0.0 │ Running │ 2026-11-19 │",
      "│ │ │ │ 03:42:25 │",
    ]);
    const narrow = table(["instance", "environment", "status", "expires"], rows, { ...output, isTty: true, columns: 62 });
    expect(narrow).toContain("│ probe-abcdefghijklmnopqrstuv │");
  });

  it("leave out columns without a value, and at a narrow terminal those that are not needed", () => {
    const shown = (columns: number) =>
      table(["id", "note", "owner", "created"], [["18370df2bc19", "", "alice", "2026-11-19"]], { ...output, isTty: true, columns }, [
        "created",
        "owner",
      ]);
    expect(shown(80)).toMatch(/│ id +│ owner +│ created +│\n├/);
    expect(shown(40)).toMatch(/│ id +│ owner +│ created +│\n├/);
    expect(shown(30)).toMatch(/│ id +│ owner +│\n├/);
    expect(shown(20)).toMatch(/│ id +│\n├/);
  });

  it("have one line below titles of several lines", () => {
    const lines = table(["max instances", "created at"], [["1", "now"]], { ...output, isTty: true, columns: 24 }).split("\n");
    expect(lines.map((line) => line.slice(0, 3))).toEqual(["┌──", "│ m", "│ i", "├──", "│ 1", "└──"]);
  });

  it("leave out values that are empty", () => {
    expect(
      facts(
        [
          ["One", "1"],
          ["None", ""],
          ["Nothing", null],
          ["Longer", "2"],
        ],
        output,
      ),
    ).toBe("  One     1\n  Longer  2");
  });
});

describe("texts", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1 kB"],
    [210_400, "210 kB"],
    [1_250_000, "1.3 MB"],
    [3_000_000_000, "3.0 GB"],
  ])("write %i bytes as %s", (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });

  it("write a count of one in the singular", () => {
    expect([countText(1, "tool"), countText(2, "tool"), countText(0, "tool")]).toEqual(["1 tool", "2 tools", "0 tools"]);
  });

  it("keep the first line of a description", () => {
    expect(truncate("a long line\nand another", 6)).toBe("a lon…");
    expect(truncate("short\nmore", 20)).toBe("short");
  });

  it("write a time in the local time zone, and keep text that is no time", () => {
    expect(timeText("2026-01-02T03:04:05.678Z")).toMatch(/^2026-01-0\d \d\d:\d4:05$/);
    expect([timeText("soon"), timeText(null), timeText(undefined)]).toEqual(["soon", "", ""]);
  });

  it("colour a status by its meaning", () => {
    const colors = picocolors.createColors(true);
    expect(statusText("Running", colors)).toBe(colors.green("Running"));
    expect(statusText("Creating", colors)).toBe(colors.yellow("Creating"));
    expect(statusText("Failed", colors)).toBe(colors.red("Failed"));
    expect(statusText("Odd", colors)).toBe(colors.dim("Odd"));
  });
});
