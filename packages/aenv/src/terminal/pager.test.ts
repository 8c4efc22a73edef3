import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { page } from "./pager.ts";
import type { Output, Terminal } from "./terminal.ts";

const LONG = "a line\n".repeat(50);

/** Pages a text at a terminal of 24 rows. */
async function shown(text: string, env: Readonly<Record<string, string>>, isTty = true): Promise<string> {
  const printed: string[] = [];
  const stdout: Output = { colors: picocolors.createColors(false), isTty, columns: 80, write: (part) => void printed.push(part) };
  const input = { size: () => ({ rows: 24, cols: 80 }) } as NonNullable<Terminal["input"]>;
  await page(text, { stdout, input, env: { PATH: process.env.PATH, ...env } });
  return printed.join("");
}

describe("a long text", () => {
  it("goes through the pager of the variable, which gets colours", async () => {
    using tree = temporaryTree();
    const file = join(tree.path, "paged");
    expect(await shown(LONG, { PAGER: `(echo "$LESS"; cat) > '${file}'` })).toBe("");
    expect(readFileSync(file, "utf8")).toBe(`FRX\n${LONG}`);
    await shown(LONG, { PAGER: `(echo "$LESS"; cat) > '${file}'`, LESS: "S" });
    expect(readFileSync(file, "utf8")).toMatch(/^S\n/);
  });

  it("is printed where no pager is wanted or found, and where there is no terminal", async () => {
    for (const PAGER of ["", "cat", "no-such-pager-here 2>/dev/null"]) expect(await shown(LONG, { PAGER })).toBe(LONG);
    expect(await shown(LONG, { PAGER: "false" }, false)).toBe(LONG);
    expect(await shown("short\n", { PAGER: "false" })).toBe("short\n");
  });
});
