import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkConfig } from "./config.ts";
import { misspelledFields } from "./config-names.ts";

const minimal = { name: "shop", version: "1.0.0" };

describe("misspelledFields", () => {
  it.each([
    [{ ...minimal, deployConfg: {} }, ["deployConfg"], "deployConfig?"],
    [{ ...minimal, deploy_config: {} }, ["deploy_config"], "deployConfig?"],
    [{ ...minimal, deployConfig: { isolaton: "shared" } }, ["deployConfig", "isolaton"], "deployConfig.isolation?"],
    [{ ...minimal, deployConfig: { service: { replica: 2 } } }, ["deployConfig", "service", "replica"], "deployConfig.service.replicas?"],
    [{ ...minimal, artifacts: [{ typ: "image", type: "a", content: "b" }] }, ["artifacts", 0, "typ"], "artifacts.0.type?"],
    [{ ...minimal, ttl: "1h" }, ["ttl"], "deployConfig.ttl?"],
    [{ ...minimal, buildConfig: { dtaa: ["data"] } }, ["buildConfig", "dtaa"], "buildConfig.data?"],
  ])("names the field that was meant in %j", (config, path, meant) => {
    const found = misspelledFields(config);
    expect(found).toMatchObject([{ path }]);
    expect(found[0]?.message).toContain(`did you mean ${meant}`);
  });

  it("keeps misspelled fields", () => {
    expect(checkConfig({ ...minimal, deployConfg: { a: 1 } })).toMatchObject({ ok: true, config: { deployConfg: { a: 1 } } });
  });

  it("reports neither an author's own fields nor variables and labels", () => {
    const own = { extra: { kept: true }, deployConfig: { environmentVariables: { TTL: "1", ttl: "1" }, labels: { nme: "x" } } };
    expect(misspelledFields({ ...minimal, ...own })).toEqual([]);
  });

  it("accepts any JSON", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void misspelledFields(value)));
  });
});
