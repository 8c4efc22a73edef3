import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EndReader } from "./protocol.ts";

const NONCE = "end-0123456789abcdef";
const report = (code: number, cwd: string) => Buffer.from(`\0${NONCE} ${code} ${cwd}\0`);
/** What a command could write if it found the control stream, without the nonce. */
const noise = fc
  .array(fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.constantFrom("\0", "end-", "end-00 0 /\0", `${NONCE.slice(0, -1)} 0 /\0`, " 0 /\0")))
  .map((parts) => Buffer.concat(parts.map((part) => Buffer.from(part))))
  .filter((bytes) => !bytes.includes(NONCE));
const folder = fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0"));

function read(reader: EndReader, chunks: readonly Buffer[]) {
  for (const chunk of chunks) {
    const end = reader.push(chunk);
    if (end !== null) return end;
  }
  return null;
}

function divided(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

describe("the reader of a command's end", () => {
  it("finds the report in any noise and however it is divided", () => {
    fc.assert(
      fc.property(noise, fc.integer({ min: 0, max: 255 }), folder, fc.array(fc.nat()), (before, exitCode, cwd, cuts) => {
        const stream = Buffer.concat([before, report(exitCode, cwd)]);
        expect(read(new EndReader(NONCE), divided(stream, cuts))).toEqual({ exitCode, cwd });
      }),
    );
  });

  it("takes nothing else for a report", () => {
    fc.assert(
      fc.property(noise, fc.array(fc.nat()), (bytes, cuts) => {
        expect(read(new EndReader(NONCE), divided(bytes, cuts))).toBeNull();
      }),
    );
  });

  it("waits for the whole report, and ignores that of another command", () => {
    const reader = new EndReader(NONCE);
    expect(reader.push(Buffer.from(`\0end-other 0 /\0\0${NONCE} 3 /tm`))).toBeNull();
    expect(reader.push(Buffer.from("p\0"))).toEqual({ exitCode: 3, cwd: "/tmp" });
  });
});
