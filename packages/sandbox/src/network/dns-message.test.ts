import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeAnswer, parseQuery } from "./dns-message.ts";

const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join("."));

describe("a query for a name", () => {
  it("is parsed as it was written, in lower case", () => {
    fc.assert(
      fc.property(name, fc.nat({ max: 65_535 }), fc.constantFrom(1, 28, 16), (text, id, type) => {
        expect(parseQuery(query(text, id, type))).toMatchObject({ id, name: text.toLowerCase(), type, isRecursionDesired: true });
      }),
    );
  });

  it("is anything or null for arbitrary bytes, without an error", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => void parseQuery(Buffer.from(bytes))));
    fc.assert(
      fc.property(name, fc.nat({ max: 400 }), fc.nat({ max: 255 }), (text, at, value) => {
        const message = query(text, 7, 1);
        message[at % message.length] = value;
        parseQuery(message);
        parseQuery(message.subarray(0, at % message.length));
      }),
    );
  });

  it("is not an answer, and has no compressed names and no other characters", () => {
    const answer = query("a.b", 1, 1);
    answer.writeUInt16BE(0x8100, 2);
    const compressed = query("a.b", 1, 1);
    compressed[12] = 0xc0;
    expect([answer, compressed, query("a b.c", 1, 1), Buffer.alloc(3)].map(parseQuery)).toEqual([null, null, null, null]);
  });
});

describe("an answer", () => {
  it("repeats the question and has one record per address", () => {
    fc.assert(
      fc.property(name, fc.array(fc.ipV4(), { maxLength: 24 }), fc.nat({ max: 300 }), (text, addresses, ttl) => {
        const message = query(text, 99, 1);
        const question = parseQuery(message);
        if (question === null) throw new Error("not parsed");
        const answer = encodeAnswer(question, "ok", addresses, ttl);
        const records = 12 + question.bytes.length;
        expect(answer.readUInt16BE(0)).toBe(99);
        expect(answer.subarray(12, records)).toEqual(message.subarray(12));
        expect(answer.readUInt16BE(6)).toBe(addresses.length);
        const found = addresses.map((_, index) => [...answer.subarray(records + index * 16 + 12, records + index * 16 + 16)].join("."));
        expect(found).toEqual(addresses);
        expect(answer.length).toBe(records + addresses.length * 16);
      }),
    );
  });
});

function query(text: string, id: number, type: number): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(0x0100, 2);
  header.writeUInt16BE(1, 4);
  const labels = text.split(".").flatMap((one) => [Buffer.from([one.length]), Buffer.from(one)]);
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, type, 0, 1])]);
}
