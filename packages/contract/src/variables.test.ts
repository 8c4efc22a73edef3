import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPlatformError } from "./errors.ts";
import { assertVariables, variableKind, variableProblem } from "./variables.ts";

const shop = { name: "shop", version: "1.0.0" };

describe("a caller's variables", () => {
  it.each([
    ...["NODE_OPTIONS", "NODE_PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "GCONV_PATH"],
    ...["PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "DOTNET_STARTUP_HOOKS"],
    ...["PATH", "HOME", "SHELL", "TMPDIR", "IFS", "ENV", "BASH_ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "ZDOTDIR", "XDG_CONFIG_HOME"],
    ...["GIT_SSH_COMMAND", "GIT_EXEC_PATH", "SSH_ASKPASS", "EDITOR", "PAGER", "LESSOPEN", "MAKEFLAGS", "npm_config_script_shell"],
    ...["SSL_CERT_FILE", "SSLKEYLOGFILE", "OPENSSL_CONF", "CURL_CA_BUNDLE", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "Path"],
  ])("may not contain %s, which other programs read", (name) => {
    expect(variableProblem(name, "x", "caller")).toContain(`'${name}' is read by`);
    expect(variableProblem(name, "x", "publisher")).toBeNull();
  });

  it.each(["AENV_STORAGE", "AENV_DATASOURCE", "AENV_SANDBOX", "AENV_TYPE", "aenv_data_dir", "OTEL_EXPORTER_OTLP_ENDPOINT"])(
    "may not contain %s, which is the platform's, and neither may a publisher's",
    (name) => {
      for (const setter of ["caller", "publisher"] as const) {
        expect(variableProblem(name, "x", setter)).toContain("is set by the platform");
      }
    },
  );

  it.each(["TAU2_DOMAIN", "TAU2_USER_LLM_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DEBUG", "LANG", "TZ", "GOOGLE_API_KEY", "a.b-c"])(
    "may contain %s, which is an environment's own",
    (name) => {
      expect(variableProblem(name, "any text\nof more lines", "caller")).toBeNull();
    },
  );

  it.each(["", "A=B", "A B", "1A", "A\0", "BASH_FUNC_ls%%", "ä", "A\n", "=A"])("may not have the name %j", (name) => {
    for (const setter of ["caller", "publisher"] as const) expect(variableProblem(name, "x", setter)).toContain("is not a variable's name");
  });

  it("may not contain a NUL byte, and the error does not repeat the value", () => {
    const problem = variableProblem("TOKEN", "secret\0value", "caller");
    expect(problem).toContain("'TOKEN' contains a NUL byte");
    expect(problem).not.toContain("secret");
  });

  it("may name the environment, as the original's clients do, but no other one", () => {
    expect(() => assertVariables({ envNAME: "shop", envversion: "1.0.0", DEBUG: "1" }, shop)).not.toThrow();
    expect(() => assertVariables({ envNAME: "shop", envversion: "" }, shop)).not.toThrow();
    expect(() => assertVariables({ envNAME: "bank" }, shop)).toThrow("'envNAME' must be 'shop', or be left out");
    expect(() => assertVariables({ envversion: "2.0.0" }, shop)).toThrow("'envversion' must be '1.0.0'");
  });

  it("are refused by name, with a code and the reason", () => {
    const demand = () => assertVariables({ DEBUG: "1", NODE_OPTIONS: "--import=data:,evil" }, shop);
    expect(demand).toThrow("environment_variables: 'NODE_OPTIONS' is read by Node.js or its tools, so a caller may not set it");
    expect(demand).toThrow(expect.objectContaining({ code: "request.invalid", details: { variable: "NODE_OPTIONS" } }));
  });

  it("are accepted only if each is a valid name that neither the platform nor other programs read, whatever the spelling", () => {
    const names = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]*$/),
      fc
        .tuple(fc.constantFrom("LD_", "node_", "AENV_", "Otel_", "PYTHON", "git_"), fc.stringMatching(/^[A-Za-z0-9_]*$/))
        .map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(fc.dictionary(names, fc.string()), (variables) => {
        let isAccepted = true;
        try {
          assertVariables(variables, shop);
        } catch (error) {
          expect(isPlatformError(error, "request.invalid")).toBe(true);
          isAccepted = false;
        }
        const isHarmless = Object.entries(variables).every(
          ([name, value]) =>
            /^[\w.-]+$/.test(name) &&
            !/^\d/.test(name) &&
            !/^(?:ld_|node_|aenv_|otel_|python|git_)/i.test(name) &&
            variableKind(name) !== "reserved" &&
            !value.includes("\0"),
        );
        if (isAccepted) expect(isHarmless || variables.envNAME !== undefined || variables.envversion !== undefined).toBe(true);
        else expect(isHarmless && variables.envNAME === undefined && variables.envversion === undefined).toBe(false);
      }),
    );
  });

  it("are checked case-insensitively", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z_]{1,12}$/), (name) => {
        if (variableKind(name) === "identity") return;
        expect(variableKind(name.toLowerCase())).toBe(variableKind(name.toUpperCase()));
      }),
    );
  });
});
