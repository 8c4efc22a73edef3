import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomValue, seededRandom } from "./random-value.ts";

const leaf = fc.oneof(
  fc.constant({ type: "string" }),
  fc.record({ type: fc.constant("string"), minLength: fc.nat(5) }),
  fc.record({ type: fc.constant("string"), enum: fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 3 }) }),
  fc.constant({ type: "boolean" }),
  fc.record({ type: fc.constant("integer"), minimum: fc.integer({ min: -5, max: 5 }) }),
  fc.record({ type: fc.constant("number"), minimum: fc.constant(0), maximum: fc.integer({ min: 0, max: 5 }) }),
  fc.constant({ type: ["string", "null"] }),
);
const { schema } = fc.letrec((tie) => ({
  schema: fc.oneof({ maxDepth: 3 }, leaf, tie("array"), tie("object"), tie("choice")),
  array: fc.record({ type: fc.constant("array"), items: tie("schema"), minItems: fc.nat(2) }),
  object: fc
    .record({ properties: fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), tie("schema"), { maxKeys: 3 }), requiresAll: fc.boolean() })
    .map(({ properties, requiresAll }) => ({ type: "object", properties, required: requiresAll ? Object.keys(properties) : [] })),
  choice: fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
}));

describe("random arguments", () => {
  it("fit the schema they are drawn from", () => {
    const ajv = new Ajv({ strict: false });
    fc.assert(
      fc.property(schema, fc.integer(), (drawn, seed) => {
        const value = randomValue(drawn, seededRandom(seed));
        const isValid = ajv.validate(drawn as object, value);
        expect(isValid, `${JSON.stringify(value)} for ${JSON.stringify(drawn)}: ${ajv.errorsText()}`).toBe(true);
      }),
    );
  });

  it("are the same for the same seed", () => {
    fc.assert(
      fc.property(schema, fc.integer(), (drawn, seed) => {
        expect(randomValue(drawn, seededRandom(seed))).toEqual(randomValue(drawn, seededRandom(seed)));
      }),
    );
  });
});
