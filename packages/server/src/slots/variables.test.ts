import type { EnvironmentConfig } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import { isSameVariables, mergeVariables, platformVariables } from "./variables.ts";

const shop = (deployConfig: EnvironmentConfig["deployConfig"] = {}) => ({
  name: "shop",
  version: "1.0.0",
  config: { name: "shop", version: "1.0.0", deployConfig },
});

describe("an environment's own variables", () => {
  it("are those of its config in both spellings, with its name and version", () => {
    const own = ownVariables(
      shop({ environmentVariables: { A: "camel", B: "camel" }, environment_variables: { B: "snake", PATH: "/opt" } }),
    );
    expect(own).toEqual({ A: "camel", B: "snake", PATH: "/opt", envNAME: "shop", envversion: "1.0.0" });
  });

  it("never contain variables of the platform or another name or version", () => {
    const own = ownVariables(shop({ environment_variables: { AENV_STORAGE: "/other", OTEL_X: "1", envNAME: "bank", "A=B": "1" } }));
    expect(own).toEqual({ envNAME: "shop", envversion: "1.0.0" });
  });
});

describe("an instance's variables", () => {
  it("are the environment's own, overridden by the caller's, with the name and version filled in", () => {
    const own = ownVariables(shop({ environment_variables: { A: "config", B: "config" } }));
    expect(mergeVariables(own, { B: "request", C: "request", envversion: "" }, {})).toEqual({
      A: "config",
      B: "request",
      C: "request",
      envNAME: "shop",
      envversion: "1.0.0",
    });
  });

  it("are overridden by the platform's, also those that a sandbox reports for a fork", () => {
    const laid = mergeVariables(
      ownVariables(shop()),
      { AENV_STORAGE: "/other", AENV_DATASOURCE: "lie" },
      platformVariables({ datasource: "truth" }),
    );
    expect(laid).toEqual({ envNAME: "shop", envversion: "1.0.0", AENV_DATASOURCE: "truth" });
  });

  it("never contain a platform variable with a value of the caller", () => {
    const variables = fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom("AENV_STORAGE", "AENV_TYPE", "aenv_sandbox", "OTEL_A", "A")),
      fc.string(),
    );
    fc.assert(
      fc.property(variables, variables, fc.constantFrom({}, { AENV_TYPE: "service" }), (config, callers, platform) => {
        const laid = mergeVariables(ownVariables(shop({ environment_variables: config })), callers, platform);
        for (const [name, value] of Object.entries(laid)) {
          if (/^(?:aenv|otel)_/i.test(name)) expect((platform as Record<string, string>)[name]).toBe(value);
        }
      }),
    );
  });

  it("are equal only if all names and values are", () => {
    expect(isSameVariables({ A: "1", B: "2" }, { B: "2", A: "1" })).toBe(true);
    for (const other of [{}, { A: "1" }, { A: "1", B: "3" }, { A: "1", C: "2" }])
      expect(isSameVariables({ A: "1", B: "2" }, other)).toBe(false);
  });
});
