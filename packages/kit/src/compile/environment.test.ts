import { isPlatformError } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type EnvironmentDefinition, tool } from "../definition/definition.ts";
import type { SourceLocation } from "../definition/source-location.ts";
import { compileEnvironment } from "./environment.ts";

const identity = { name: "e", version: "1.0.0" };
const run = () => null;

async function problemWith(definition: object): Promise<string> {
  const failure = await compileEnvironment(definition as EnvironmentDefinition, identity).catch((error: unknown) => error);
  expect(isPlatformError(failure, "environment.invalid")).toBe(true);
  return (failure as Error).message;
}

describe("a compiled environment", () => {
  it("describes tools as MCP does, with the author's own names and descriptions", async () => {
    const environment = await compileEnvironment(
      defineEnvironment({
        tools: [
          {
            name: "look",
            title: "Look",
            description: "Looks.",
            input: z.object({ at: z.string() }),
            annotations: { readOnlyHint: true },
            run,
          },
          { name: "secret", hidden: true, run },
        ],
      }) as EnvironmentDefinition,
      identity,
    );
    expect([...environment.tools.keys()]).toEqual(["look"]);
    expect(environment.tools.get("look")?.descriptor).toMatchObject({
      name: "look",
      title: "Look",
      description: "Looks.",
      annotations: { readOnlyHint: true },
      inputSchema: { type: "object", required: ["at"] },
    });
  });

  it("lists functions, rewards and health with their endpoints and methods", async () => {
    const environment = await compileEnvironment(
      {
        functions: [
          { name: "peek", run },
          { name: "find", endpoint: "/search", method: "GET", input: z.object({ q: z.string(), n: z.number().default(3) }), run },
        ],
        rewards: [{ name: "done", score: () => 1 }],
        health: () => ({ status: "healthy" }),
      },
      identity,
    );
    expect(environment.catalogue.total).toBe(4);
    expect(environment.catalogue.functions.map(({ name, endpoint, method }) => [name, endpoint, method])).toEqual([
      ["peek", "/functions/peek", "POST"],
      ["find", "/search", "GET"],
    ]);
    expect(environment.catalogue.functions[1]?.parameters).toEqual({
      q: { type: "string", default: null },
      n: { type: "number", default: "3" },
    });
    expect(environment.catalogue.reward[0]).toMatchObject({ name: "done", endpoint: "/task/reward", method: "POST" });
    expect(environment.catalogue.health[0]).toMatchObject({ endpoint: "/health", method: "GET" });
  });

  it("refuses two parts of the same name, and points at the line of the second", async () => {
    const first = tool({ name: "add", run });
    const second = tool({ name: "add", run });
    const failure = await compileEnvironment({ tools: [first, second] }, identity).catch((error: unknown) => error);
    expect((failure as Error).message).toContain("tool 'add' is defined twice");
    const place = (failure as { details: { place: SourceLocation } }).details.place;
    expect(place.file).toMatch(/environment\.test\.ts$/);
    expect(place.line).toBeGreaterThan(1);
  });

  it("refuses invalid names, inputs and code, and names them", async () => {
    expect(await problemWith({ tools: [{ name: "no spaces", run }] })).toContain("tool 'no spaces': a name has");
    expect(await problemWith({ tools: [{ name: "env/tool", run }] })).toContain("tool 'env/tool': a name has");
    expect(await problemWith({ tools: [{ name: "constructor", run }] })).toContain("the name is reserved");
    expect(await problemWith({ tools: [{ name: "x" }] })).toContain("tool 'x' has no 'run' function");
    expect(await problemWith({ tools: [{ name: "x", input: z.string(), run }] })).toContain("tool 'x': its input must be of type object");
    expect(await problemWith({ tools: [{ name: "x", input: 5, run }] })).toContain("tool 'x': its input must be a zod schema");
    expect(await problemWith({ rewards: [{ name: "r", weight: Number.NaN, score: run }] })).toContain("its weight is NaN");
    expect(await problemWith({ rewards: [{ name: "r" }] })).toContain("reward 'r' has no 'score' function");
    expect(await problemWith(null as unknown as object)).toContain("made by defineEnvironment");
  });

  it("refuses an unknown option, and suggests the nearest known one", async () => {
    expect(await problemWith({ setUp: run })).toBe("the environment: unknown option 'setUp'; did you mean 'setup'?");
    expect(await problemWith({ healthAt: { endpont: "/x" } })).toContain("healthAt of the environment: unknown option 'endpont'");
    expect(await problemWith({ tools: [{ name: "x", inputs: {}, run }] })).toBe("tool 'x': unknown option 'inputs'; did you mean 'input'?");
    expect(await problemWith({ tools: [{ name: "x", timeout_ms: 5, run }] })).toContain("did you mean 'timeoutMs'?");
    expect(await problemWith({ rewards: [{ name: "r", wieght: 2, score: run }] })).toContain(
      "reward 'r': unknown option 'wieght'; did you mean 'weight'?",
    );
    expect(await problemWith({ rewards: [{ name: "r", run }] })).toContain("reward 'r': unknown option 'run'; the options are name,");
    expect(await problemWith({ functions: [{ name: "f", colour: "red", run }] })).toContain("the options are name, description, input,");
  });

  it("accepts other fields of an environment that is an instance of a class", async () => {
    class Shop {
      readonly open = true;
      setup() {
        return this.open;
      }
    }
    await compileEnvironment(new Shop(), identity);
  });

  it("points at the environment's line if a part has no location of its own", async () => {
    const definition = defineEnvironment({ tools: [{ name: "no spaces", run }] });
    const failure = await compileEnvironment(definition as EnvironmentDefinition, identity).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "environment.invalid",
      details: { place: { file: expect.stringMatching(/environment\.test\.ts$/) } },
    });
  });

  it("refuses endpoints that are reserved or used by another function", async () => {
    const named = (endpoint: string) => ({ functions: [{ name: "f", endpoint, run }] });
    for (const taken of [
      "/mcp",
      "/env-instance/x",
      "/task/reward",
      "/task/reset",
      "/state/snapshot",
      "/state/digest",
      "/episode/reply",
      "/functions/list",
    ]) {
      expect(await problemWith(named(taken))).toContain("is reserved for the platform");
    }
    expect(await problemWith(named("search"))).toContain("must be a path that begins with '/'");
    const twice = {
      functions: [
        { name: "a", endpoint: "/x", run },
        { name: "b", endpoint: "/x", run },
      ],
    };
    expect(await problemWith(twice)).toContain("POST /x is already used by function 'a'");
  });
});
