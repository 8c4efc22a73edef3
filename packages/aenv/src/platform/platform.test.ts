import { PlatformError } from "@aenv/contract";
import { temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { controlUrl, openPlatform, type PlatformOptions, withServerHint } from "./platform.ts";

const FILE = ".aenv/cli_config.json";

function terminal(env: Terminal["env"] = {}): Terminal {
  const output = { colors: picocolors.createColors(false), isTty: false, columns: 100, write: () => {} };
  const stopSignal = () => new AbortController().signal;
  return { stdout: output, stderr: output, cwd: "/", env: { HOME: "/nonexistent", ...env }, isInteractive: false, stopSignal };
}

describe("the server's address", () => {
  it.each([
    ["http://localhost", "http://localhost:8080"],
    ["localhost", "http://localhost:8080"],
    ["10.0.0.7:9000", "http://10.0.0.7:9000"],
    ["https://aenv.example", "https://aenv.example:8080"],
    ["https://aenv.example:443/", "https://aenv.example:443"],
    ["http://aenv.example:8080/platform/", "http://aenv.example:8080/platform"],
    ["http://[::1]:9000", "http://[::1]:9000"],
  ])("reads %s as %s", (given, url) => {
    expect(controlUrl(given)).toBe(url);
  });

  it.each(["", "ftp://x", "http://", "redis://x:1"])("refuses '%s'", (given) => {
    expect(() => controlUrl(given)).toThrow(Failure);
  });
});

describe("openPlatform", () => {
  const open = (options: PlatformOptions = {}, env: Terminal["env"] = {}) => {
    const { url, hubUrl, apiKey } = openPlatform(options, terminal(env));
    return { url, hubUrl, apiKey };
  };

  it("uses the server on this machine by default", () => {
    expect(open()).toEqual({ url: "http://localhost:8080", hubUrl: "http://localhost:8080", apiKey: "" });
  });

  it("prefers an option to a variable, and a variable to the settings", () => {
    using home = temporaryTree({
      [FILE]: { system_url: "http://file", hub_config: { api_key: "from-file", hub_backend: "http://hub-file:1" } },
    });
    const env = { HOME: home.path };
    expect(open({}, env)).toEqual({ url: "http://file:8080", hubUrl: "http://hub-file:1", apiKey: "from-file" });
    const variables = { ...env, AENV_SYSTEM_URL: "http://env", HUB_BACKEND: "http://hub-env:2", AENV_API_KEY: "from-env" };
    expect(open({}, variables)).toEqual({ url: "http://env:8080", hubUrl: "http://hub-env:2", apiKey: "from-env" });
    const options = { systemUrl: "http://flag", apiKey: "from-flag" };
    expect(open(options, variables)).toEqual({ url: "http://flag:8080", hubUrl: "http://flag:8080", apiKey: "from-flag" });
  });

  it("ignores the default hub that the original's command writes into every file", () => {
    using home = temporaryTree({ [FILE]: { system_url: null, hub_config: { hub_backend: "https://localhost:8080" } } });
    expect(open({}, { HOME: home.path, AENV_SYSTEM_URL: "http://there:1" }).hubUrl).toBe("http://there:1");
  });
});

describe("a failure of the server", () => {
  it("has a hint", () => {
    const failure = withServerHint(new PlatformError("access.unauthenticated", "no token"));
    expect([failure.exit, failure.code, failure.hint]).toEqual(["denied", "access.unauthenticated", expect.stringContaining("aenv login")]);
    expect(withServerHint(new PlatformError("network.failed", "refused"))).toMatchObject({
      exit: "unreachable",
      hint: expect.stringContaining("aenv server"),
    });
  });

  it("keeps a hint that it already has", () => {
    const failure = new Failure("no", { hint: "do this" });
    expect(withServerHint(failure)).toBe(failure);
  });
});
