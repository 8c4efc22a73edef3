import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rolloutRequest, rolloutsRequest } from "./rollout.ts";

const minimal = { id: "a", environment: "shop@1.0.0" };

const ids = fc.stringMatching(/^[A-Za-z0-9._:-]{1,200}$/);
const tasks = fc.oneof(
  fc.record({ id: fc.string({ minLength: 1, maxLength: 50 }) }),
  fc.record({ split: fc.string({ minLength: 1, maxLength: 50 }), index: fc.nat() }),
);
const requests = fc.record(
  {
    id: ids,
    environment: fc.constant("shop@1.0.0"),
    task: tasks,
    group: fc.record({ id: fc.string(), index: fc.nat(), size: fc.nat() }),
    seed: fc.integer(),
    model: fc.record({
      base_url: fc.webUrl(),
      tokens: fc.constantFrom("service", "trainer", "auto"),
      sampling: fc.dictionary(fc.string(), fc.jsonValue()),
    }),
    limits: fc.record({ turns: fc.integer({ min: 1 }), seconds: fc.integer({ min: 1, max: 86_400 }) }, { requiredKeys: [] }),
    reward_args: fc.dictionary(fc.string(), fc.jsonValue()),
    retries: fc.nat(10),
    metadata: fc.dictionary(fc.string(), fc.jsonValue()),
  },
  { requiredKeys: ["id", "environment"] },
);

describe("a request for rollouts", () => {
  it("keeps every field that is given, and parses to the same again", () => {
    fc.assert(
      fc.property(fc.array(requests, { minLength: 1, maxLength: 3 }), fc.boolean(), (generated, stream) => {
        // As it arrives: JSON has no -0. A field called __proto__ is dropped.
        const rollouts = JSON.parse(JSON.stringify(generated).replaceAll("__proto__", "proto"));
        const parsed = rolloutsRequest.parse({ rollouts, stream });
        expect(parsed.rollouts).toMatchObject(rollouts);
        expect(rolloutsRequest.parse(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed);
      }),
    );
  });

  it("never throws anything but a list of problems, whatever is sent", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const given of [value, { rollouts: value }, { rollouts: [value] }, { rollouts: [{ ...minimal, model: value }] }]) {
          const { success, error } = rolloutsRequest.safeParse(given);
          expect(success || (error?.issues.length ?? 0) > 0).toBe(true);
        }
      }),
    );
  });

  it("has an id of 1 to 200 letters, digits, dots, underscores, colons and hyphens", () => {
    for (const id of ["s120-u7-3", "a", "x".repeat(200)]) expect(rolloutRequest.safeParse({ ...minimal, id }).success).toBe(true);
    for (const id of ["", "a/b", "a b", "ä", "x".repeat(201), 5, null])
      expect(rolloutRequest.safeParse({ ...minimal, id }).success).toBe(false);
  });

  it("sets no header of the connection, and none with more than one line", () => {
    const withHeaders = (headers: object) => rolloutRequest.safeParse({ ...minimal, model: { base_url: "http://m/v1", headers } }).success;
    expect(withHeaders({ "x-smg-routing-key": "a" })).toBe(true);
    for (const headers of [{ Host: "x" }, { "content-length": "1" }, { "x-a": "1\r\nx-b: 2" }, { "x a": "1" }])
      expect(withHeaders(headers)).toBe(false);
  });
});
