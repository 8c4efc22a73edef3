import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createInstanceRequest, resetRequest } from "./instance.ts";
import { problemsOf } from "./problems.ts";
import { fieldLimits, knownFields, text } from "./request-fields.ts";
import { createServiceRequest, updateServiceRequest } from "./service.ts";

const { variables, labels, arguments: args } = fieldLimits;

function problemOf(schema: typeof createInstanceRequest | typeof createServiceRequest, value: unknown): string | null {
  const parsed = schema.safeParse(value);
  return parsed.success ? null : problemsOf(parsed.error, "the body");
}

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, "x"]));

describe("the fields of a request", () => {
  it.each([
    [{ labels: many(labels.count) }, null],
    [{ labels: many(labels.count + 1) }, "labels must have at most 64 entries"],
    [{ labels: { a: "x".repeat(257) } }, "labels.a must have at most 256 characters"],
    [{ labels: { ["x".repeat(129)]: "" } }, `labels.${"x".repeat(60)}...: its name must have at most 128 characters`],
    [{ arguments: Array(args.count + 1).fill("") }, "arguments must have at most 256 entries"],
    [{ arguments: Array(9).fill("x".repeat(8_000)) }, "arguments must have at most 65536 bytes in all"],
    [{ environment_variables: many(variables.count) }, null],
    [{ environment_variables: many(variables.count + 1) }, "environment_variables must have at most 1000 entries"],
    [{ environment_variables: { A: "x".repeat(variables.totalBytes - 1) } }, null],
    [{ environment_variables: { A: "x".repeat(variables.totalBytes) } }, "environment_variables must have at most 262144 bytes in all"],
    [{ environment_variables: { A: "\u20ac".repeat(100_000) } }, "environment_variables must have at most 262144 bytes in all"],
    [{ task: "x".repeat(257) }, "task must have at most 256 characters"],
    [{ owner: "x".repeat(257) }, "owner must have at most 256 characters"],
    [{ ttl: "1".repeat(65) }, "ttl must have at most 64 characters"],
    [{ envName: "x".repeat(1_025) }, "envName must have at most 1024 characters"],
    [{ datasource: "x".repeat(1_025) }, "datasource must have at most 1024 characters"],
    [{ snapshot: { state: "x".repeat(5_000_000) } }, null],
  ])("are small enough for a row, but for a snapshot (%#)", (request, problem) => {
    expect(problemOf(createInstanceRequest, request)).toBe(problem);
  });

  it("of a service have the same limits", () => {
    for (const field of ["cpu_request", "memory_limit", "ephemeral_storage_limit", "storage_size"])
      expect(problemOf(createServiceRequest, { envName: "a", [field]: "1".repeat(65) })).toBe(`${field} must have at most 64 characters`);
    expect(updateServiceRequest.safeParse({ environment_variables: many(1_001) }).success).toBe(false);
  });

  it("must be known", () => {
    const schema = knownFields({ task: text(9).optional() }).extend({ seed: text(9).optional() });
    fc.assert(
      fc.property(fc.string(), (name) => {
        const parsed = schema.safeParse({ [name]: "x" });
        expect(parsed.success).toBe(["task", "seed"].includes(name));
      }),
      { examples: [["__proto__"], ["constructor"], ["task"]] },
    );
    const told = (value: object) => problemsOf(schema.safeParse(value).error ?? never(), "the body");
    expect(told({ tsk: 1 })).toBe("unknown field 'tsk'; did you mean 'task'?");
    // The fields are those of the extended schema, not of the one before.
    expect(told({ sede: 1, color: 1 })).toBe(
      "unknown field 'sede'; did you mean 'seed'?; unknown field 'color'; known fields are task, seed",
    );
  });
});

describe("problemsOf", () => {
  it("describes what a field must be, and never its value", () => {
    const secret = "zq-secret";
    const told = [
      createInstanceRequest.safeParse({ environment_variables: { KEY: [secret] }, arguments: secret, seed: secret, id: `${secret}!` }),
      createServiceRequest.safeParse({ replicas: secret }),
      resetRequest.safeParse(secret),
    ].map((parsed) => (parsed.success ? "" : problemsOf(parsed.error, "the body")));
    expect(told).toEqual([
      "environment_variables.KEY must be a string; arguments must be an array; id must be 1 to 63 lower-case letters, digits and '-'; seed must be a number",
      "envName is missing; replicas must be a number",
      "the body must be an object",
    ]);
  });

  it("reports only the first few of many", () => {
    const parsed = createInstanceRequest.safeParse({ arguments: Array(100).fill(1) });
    expect(parsed.success ? "" : problemsOf(parsed.error, "the body")).toMatch(/^arguments\.0 must be a string; .*; and 95 more$/);
  });
});

function never(): never {
  throw new Error("it was taken");
}
