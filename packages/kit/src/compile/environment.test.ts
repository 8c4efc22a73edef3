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

  it("lists functions, rewards and health with the endpoints and methods that they really have", async () => {
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

  it("refuses two of the same name, and points at the line of the second", async () => {
    const first = tool({ name: "add", run });
    const second = tool({ name: "add", run });
    const failure = await compileEnvironment({ tools: [first, second] }, identity).catch((error: unknown) => error);
    expect((failure as Error).message).toContain("tool 'add' is defined twice");
    const place = (failure as { details: { place: SourceLocation } }).details.place;
    expect(place.file).toMatch(/environment\.test\.ts$/);
    expect(place.line).toBeGreaterThan(1);
  });

  it("refuses names, inputs and code that cannot work, and says which", async () => {
    expect(await problemWith({ tools: [{ name: "no spaces", run }] })).toContain("tool 'no spaces': a name has");
    expect(await problemWith({ tools: [{ name: "env/tool", run }] })).toContain("tool 'env/tool': a name has");
    expect(await problemWith({ tools: [{ name: "constructor", run }] })).toContain("that name belongs to every object");
    expect(await problemWith({ tools: [{ name: "x" }] })).toContain("tool 'x' has no 'run' function");
    expect(await problemWith({ tools: [{ name: "x", input: z.string(), run }] })).toContain("tool 'x': its input must be an object");
    expect(await problemWith({ tools: [{ name: "x", input: 5, run }] })).toContain("tool 'x': its input must be a zod schema");
    expect(await problemWith({ rewards: [{ name: "r", weight: Number.NaN, score: run }] })).toContain("its weight is NaN");
    expect(await problemWith({ rewards: [{ name: "r" }] })).toContain("reward 'r' has no 'score' function");
    expect(await problemWith(null as unknown as object)).toContain("made by defineEnvironment");
  });

  it("refuses an option that it does not know, and names the one that was meant", async () => {
    expect(await problemWith({ setUp: run })).toBe("the environment: 'setUp' is no option of it; did you mean 'setup'?");
    expect(await problemWith({ healthAt: { endpont: "/x" } })).toContain("healthAt of the environment: 'endpont' is no option");
    expect(await problemWith({ tools: [{ name: "x", inputs: {}, run }] })).toBe(
      "tool 'x': 'inputs' is no option of it; did you mean 'input'?",
    );
    expect(await problemWith({ tools: [{ name: "x", timeout_ms: 5, run }] })).toContain("did you mean 'timeoutMs'?");
    expect(await problemWith({ rewards: [{ name: "r", wieght: 2, score: run }] })).toContain(
      "reward 'r': 'wieght' is no option of it; did you mean 'weight'?",
    );
    expect(await problemWith({ rewards: [{ name: "r", run }] })).toContain("reward 'r': 'run' is no option of it; its options are name,");
    expect(await problemWith({ functions: [{ name: "f", colour: "red", run }] })).toContain("its options are name, description, input,");
  });

  it("leaves fields alone that an environment of a class has for itself", async () => {
    class Shop {
      readonly open = true;
      setup() {
        return this.open;
      }
    }
    await compileEnvironment(new Shop(), identity);
  });

  it("points at the environment's line where a part of it has none of its own", async () => {
    const definition = defineEnvironment({ tools: [{ name: "no spaces", run }] });
    const failure = await compileEnvironment(definition as EnvironmentDefinition, identity).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "environment.invalid",
      details: { place: { file: expect.stringMatching(/environment\.test\.ts$/) } },
    });
  });

  it("refuses endpoints that belong to the platform or to another function", async () => {
    const named = (endpoint: string) => ({ functions: [{ name: "f", endpoint, run }] });
    for (const taken of ["/mcp", "/env-instance/x", "/task/reward", "/task/reset", "/state/snapshot", "/functions/list"]) {
      expect(await problemWith(named(taken))).toContain("belongs to the platform");
    }
    expect(await problemWith(named("search"))).toContain("must be a path that begins with '/'");
    const twice = {
      functions: [
        { name: "a", endpoint: "/x", run },
        { name: "b", endpoint: "/x", run },
      ],
    };
    expect(await problemWith(twice)).toContain("POST /x is taken already by function 'a'");
  });
});
