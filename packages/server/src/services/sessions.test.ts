import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSession, tagOf, tagSession } from "./sessions.ts";

describe("a session's id", () => {
  const text = fc.string({ minLength: 1 });

  it("is split into the replica's id and tag", () => {
    fc.assert(
      fc.property(text, text, (instanceId, id) => {
        const tag = tagOf(instanceId);
        expect(readSession(tagSession(tag, id))).toEqual({ tag, id });
      }),
    );
  });

  it("does not reveal the id of the replica's instance", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{3,10}-[a-z2-7]{20}$/), (instanceId) => {
        expect(tagOf(instanceId)).toMatch(/^[0-9a-f]{16}$/);
        expect(tagOf(instanceId)).not.toContain(instanceId);
      }),
    );
  });

  it.each(["", "x", "0123456789abcdef", "0123456789abcdef.", "0123456789abcdeg.x", "0123456789ABCDEF.x", " 0123456789abcdef.x"])(
    "is not read from %j",
    (other) => expect(readSession(other)).toBeNull(),
  );
});
