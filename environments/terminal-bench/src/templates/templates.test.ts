// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of tasks have this form.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redacted, withoutSecrets } from "./secrets.ts";
import { allowedVariables, MissingHostVariable, parseTemplate, requestedVariables, resolveTemplate } from "./template.ts";

describe("templates", () => {
  it("use the host's variable, also an empty one, else the default", () => {
    expect(resolveTemplate("${A:-d}", { A: "" })).toBe("");
    expect(resolveTemplate("${A:-d}", {})).toBe("d");
    expect(() => resolveTemplate("${A}", {})).toThrow(MissingHostVariable);
  });

  it("are whole values: other texts are literal", () => {
    fc.assert(fc.property(fc.string(), (text) => parseTemplate(text) !== null || resolveTemplate(text, {}) === text));
  });

  it("read only what the operator allows", () => {
    const host = { SECRET: "s", GREETING: "hi" };
    expect(() => resolveTemplate("${SECRET}", allowedVariables(host, ["GREETING"]))).toThrow("allow the task to read it");
    expect(() => resolveTemplate("${toString}", {})).toThrow(MissingHostVariable);
  });

  it("are listed before a run", () => {
    expect(requestedVariables({ A: "${X}", B: "plain", C: "${Y:-}" })).toEqual([
      { name: "X", fallback: null },
      { name: "Y", fallback: "" },
    ]);
  });
});

describe("stored environments", () => {
  it("have no secrets", () => {
    expect(
      withoutSecrets({ API_KEY: "sk-1234567890", TOKEN: "short", MY_AUTH: "${X}", PASSWORD: "host", PLAIN: "sk-1" }, { PASSWORD: "host" }),
    ).toEqual({
      API_KEY: "sk-1****890",
      TOKEN: "****",
      MY_AUTH: "${X}",
      PASSWORD: "${PASSWORD}",
      PLAIN: "sk-1",
    });
  });

  it("show at most seven characters of a secret", () => {
    fc.assert(fc.property(fc.string({ minLength: 9 }), (value) => [...redacted(value)].length <= 11));
  });
});
