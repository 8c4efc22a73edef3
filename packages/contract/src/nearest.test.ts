import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearestName } from "./nearest.ts";

const known = ["deployConfig", "buildConfig", "testConfig", "version", "name", "ttl", "environmentVariables"];

describe("nearestName", () => {
  it.each([
    ["deployConfg", "deployConfig"],
    ["deploy_config", "deployConfig"],
    ["DeployConfig", "deployConfig"],
    ["buildConfgi", "buildConfig"],
    ["verison", "version"],
    ["nmae", "name"],
    ["tll", "ttl"],
    ["enviromentVariables", "environmentVariables"],
    ["colour", null],
    ["x", null],
    ["", null],
    ["a".repeat(1_000), null],
  ])("takes %j for %j", (given, expected) => {
    expect(nearestName(given, known)).toBe(expected);
  });

  const names = fc.array(fc.stringMatching(/^[a-z]{3,20}$/), { minLength: 1, maxLength: 10 });

  it("finds every known name itself", () => {
    fc.assert(
      fc.property(names, (list) => {
        for (const name of list) expect(nearestName(name, list)).toBe(name);
      }),
    );
  });

  it("finds a name with one character missing, unless another name is nearer", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{5,20}$/), fc.nat(), (name, seed) => {
        const at = seed % name.length;
        expect(nearestName(name.slice(0, at) + name.slice(at + 1), [name])).toBe(name);
      }),
    );
  });

  it("returns only known names, for any text", () => {
    fc.assert(
      fc.property(fc.string(), names, (given, list) => {
        const nearest = nearestName(given, list);
        expect(nearest === null || list.includes(nearest)).toBe(true);
      }),
    );
  });
});
