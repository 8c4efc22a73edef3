import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asWritten } from "./arguments.ts";

const sent = (text: string) => JSON.stringify(asWritten(text, JSON.parse(text) as Record<string, unknown>));

describe("the arguments of a call", () => {
  it.each(['{"gb":2.0}', '{"n":12345678901234567890}', '{"deep":[{"x":-0,"y":1e3}]}', '{"x":1E+05}'])(
    "keep the notation of their numbers: %s",
    (text) => {
      expect(sent(text)).toBe(text);
    },
  );

  it("are otherwise the JSON that they were", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value);
        expect(sent(text)).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });
});
