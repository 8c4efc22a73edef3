import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { StandardSchemaV1 } from "../definition/standard-schema.ts";
import { check, compileSchema } from "./schema.ts";

const nested = z.object({
  city: z.string(),
  days: z.number().int().default(3),
  unit: z.enum(["c", "f"]).optional(),
  place: z.object({ lat: z.number(), tags: z.array(z.string()).default([]) }).optional(),
});

describe("compileSchema", () => {
  it("fills a zod schema's defaults, also nested ones, and leaves optional fields out", async () => {
    const schema = await compileSchema(nested, "x");
    expect(await check(schema, { city: "Ulm", place: { lat: 1 } })).toEqual({
      ok: true,
      value: { city: "Ulm", days: 3, place: { lat: 1, tags: [] } },
    });
  });

  it("does not require fields with a default, in the schema for clients", async () => {
    const schema = await compileSchema(nested, "x");
    expect(schema.input.required).toEqual(["city"]);
  });

  it("names the wrong field by its path", async () => {
    const schema = await compileSchema(nested, "x");
    const checked = await check(schema, { city: "Ulm", place: { lat: "north" } });
    expect(checked).toMatchObject({ ok: false, problem: expect.stringContaining("place.lat: ") });
  });

  it("fills a JSON Schema's defaults and names unknown, missing and wrong fields", async () => {
    const schema = await compileSchema(
      {
        type: "object",
        properties: { q: { type: "string" }, n: { type: "integer", default: 5 }, kind: { enum: ["a", "b"] } },
        required: ["q"],
        additionalProperties: false,
      },
      "x",
    );
    expect(await check(schema, { q: "hi" })).toEqual({ ok: true, value: { q: "hi", n: 5 } });
    expect(await check(schema, { n: 1.5, kind: "z", extra: 1 })).toEqual({
      ok: false,
      problem: 'q: is required, extra: is not known, n: must be integer, kind: must be one of ["a","b"]',
    });
  });

  it("accepts draft-07 schemas too", async () => {
    const schema = await compileSchema({ $schema: "http://json-schema.org/draft-07/schema#", type: "object" }, "x");
    expect(await check(schema, {})).toEqual({ ok: true, value: {} });
  });

  it("accepts any Standard Schema that can describe itself, also an asynchronous one", async () => {
    const even: StandardSchemaV1 = {
      "~standard": {
        version: 1,
        vendor: "mine",
        validate: async (value) =>
          (value as { n: number }).n % 2 === 0 ? { value } : { issues: [{ message: "must be even", path: [{ key: "n" }] }] },
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    };
    const schema = await compileSchema(even, "x");
    expect(await check(schema, { n: 3 })).toEqual({ ok: false, problem: "n: must be even" });
    expect(await check(schema, { n: 4 })).toEqual({ ok: true, value: { n: 4 } });
  });

  it("reports what to do about a schema library without JSON Schema support", async () => {
    const mute = { "~standard": { version: 1, vendor: "mute", validate: (value: unknown) => ({ value }) } } as StandardSchemaV1;
    await expect(compileSchema(mute, "tool 'x': its input")).rejects.toThrow(/'mute' cannot describe itself.*give a JSON Schema object/);
  });

  it("refuses an invalid JSON Schema and names the part it belongs to", async () => {
    await expect(compileSchema({ type: "objekt" }, "tool 'x': its input")).rejects.toThrow(
      /tool 'x': its input is not a valid JSON Schema/,
    );
  });

  it("never throws on any JSON value of a client", async () => {
    const schemas = [await compileSchema(nested, "x"), await compileSchema({ type: "object", properties: { a: { type: "array" } } }, "y")];
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        for (const schema of schemas) expect(typeof (await check(schema, structuredClone(value))).ok).toBe("boolean");
      }),
    );
  });
});
