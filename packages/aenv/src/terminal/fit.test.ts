import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { fit } from "./fit.ts";

const colors = picocolors.createColors(true);

describe("fit", () => {
  it("leaves a line that fits unchanged, whatever colour codes it has", () => {
    const line = colors.cyan("━".repeat(40)) + colors.dim("━".repeat(40));
    expect(fit(line, 80)).toBe(line);
  });

  it("cuts by what is seen, and ends without a colour", () => {
    const cut = fit(`${colors.cyan("12345")}${colors.red("6789")}`, 7);
    expect(stripVTControlCharacters(cut)).toBe("1234567");
    expect(cut.endsWith("\x1b[0m")).toBe(true);
  });

  it("shows the first characters of any line, as many as there are columns", () => {
    const part = fc.tuple(
      fc.stringMatching(/^[a-z━ ]*$/),
      fc.constantFrom(colors.red, colors.dim, (text: string) => text),
    );
    fc.assert(
      fc.property(fc.array(part), fc.integer({ min: 1, max: 120 }), (parts, columns) => {
        const plain = parts.map(([text]) => text).join("");
        const line = parts.map(([text, paint]) => paint(text)).join("");
        expect(stripVTControlCharacters(fit(line, columns))).toBe(plain.slice(0, columns));
      }),
    );
  });
});
