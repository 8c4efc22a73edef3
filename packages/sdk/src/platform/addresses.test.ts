import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ValidationError } from "../errors/errors.ts";
import { areOnOneHost, dataUrlFrom, pinAddresses, resolveAddresses } from "./addresses.ts";

describe("resolveAddresses in remote mode", () => {
  it("uses control port 8080 and data port 8081 if the system's address has no port", () => {
    expect(resolveAddresses({ systemUrl: "http://aenv.example?x=1" }, {})).toEqual({
      mode: "remote",
      controlUrl: "http://aenv.example:8080",
      dataUrl: "http://aenv.example:8081",
    });
    expect(resolveAddresses({ systemUrl: "aenv.example/api/" }, {})).toMatchObject({ controlUrl: "http://aenv.example:8080/api" });
  });

  it.each([
    ["http://aenv.example:9999/", "http://aenv.example:9999"],
    ["https://aenv.example:9999/api?x=1", "https://aenv.example:9999/api"],
    ["https://aenv.example:443", "https://aenv.example"],
    ["http://aenv.example:80", "http://aenv.example"],
    ["127.0.0.1:41234", "http://127.0.0.1:41234"],
    ["[::1]:41234", "http://[::1]:41234"],
  ])("uses the port of %s for the control API, and the data port that the server reports", (systemUrl, controlUrl) => {
    expect(resolveAddresses({ systemUrl }, {})).toEqual({ mode: "remote", controlUrl, dataUrl: null });
    expect(resolveAddresses({}, { systemUrl })).toEqual({ mode: "remote", controlUrl, dataUrl: null });
    expect(resolveAddresses({ controlUrl }, {})).toEqual({ mode: "remote", controlUrl, dataUrl: null });
  });

  it("prefers an explicit data URL to the one that the server reports", () => {
    const addresses = resolveAddresses({ systemUrl: "http://aenv.example:9999", dataUrl: "https://data.example" }, {});
    expect(addresses).toMatchObject({ controlUrl: "http://aenv.example:9999", dataUrl: "https://data.example" });
  });

  it("prefers the option to the variable, and uses localhost without both", () => {
    const controlUrl = (options: { systemUrl?: string }, systemUrl?: string) => {
      const addresses = resolveAddresses(options, systemUrl === undefined ? {} : { systemUrl });
      return addresses.mode === "remote" ? addresses.controlUrl : null;
    };
    expect(controlUrl({ systemUrl: "one" }, "two")).toBe("http://one:8080");
    expect(controlUrl({}, "two")).toBe("http://two:8080");
    expect(controlUrl({})).toBe("http://localhost:8080");
  });

  it("keeps scheme, port and path of an explicit control and data URL", () => {
    const addresses = resolveAddresses({ controlUrl: "https://aenv.example/api/", dataUrl: "https://data.example:444/mcp" }, {});
    expect(addresses).toEqual({ mode: "remote", controlUrl: "https://aenv.example/api", dataUrl: "https://data.example:444" });
  });

  it("adds no port to an explicit URL that has none", () => {
    const addresses = resolveAddresses({ controlUrl: "http://aenv.example", dataUrl: "data.example/" }, {});
    expect(addresses).toEqual({ mode: "remote", controlUrl: "http://aenv.example", dataUrl: "http://data.example" });
  });

  it("never replaces https by http", () => {
    expect(resolveAddresses({ systemUrl: "https://aenv.example" }, {})).toMatchObject({ controlUrl: "https://aenv.example:8080" });
  });

  it("accepts a bare IPv6 address", () => {
    expect(resolveAddresses({ systemUrl: "::1" }, {})).toMatchObject({ dataUrl: "http://[::1]:8081" });
    expect(resolveAddresses({ systemUrl: "[fe80::1]" }, {})).toMatchObject({ dataUrl: "http://[fe80::1]:8081" });
  });
});

describe("resolveAddresses in local mode", () => {
  it.each(["127.0.0.1", "http://127.0.0.1", "127.0.0.1:9000", "http://127.0.0.1:8081"])(
    "counts only the host of DUMMY_INSTANCE_IP=%s",
    (dummyInstanceIp) => {
      expect(resolveAddresses({}, { dummyInstanceIp })).toMatchObject({ mode: "local", dataUrl: "http://127.0.0.1:8081" });
    },
  );

  it("prefers a named control API to DUMMY_INSTANCE_IP", () => {
    expect(resolveAddresses({ controlUrl: "http://aenv:8080" }, { dummyInstanceIp: "localhost" }).mode).toBe("remote");
  });

  it.each([
    ["localhost", "http://localhost:8081"],
    ["http://localhost", "http://localhost:8081"],
    ["http://localhost:80", "http://localhost"],
    ["http://127.0.0.1:41234/", "http://127.0.0.1:41234"],
    ["http://127.0.0.1:41234/mcp", "http://127.0.0.1:41234"],
    ["https://env.example/shop", "https://env.example/shop"],
  ])("completes the instance URL %s", (instanceUrl, dataUrl) => {
    expect(resolveAddresses({ instanceUrl }, {})).toEqual({ mode: "local", dataUrl, sandboxUrl: dataUrl, instanceId: null });
  });

  it("recognises the slot in an instance URL", () => {
    expect(resolveAddresses({ instanceUrl: "http://sandbox:1/env-instance/shop-1" }, {})).toEqual({
      mode: "local",
      dataUrl: "http://sandbox:1/env-instance/shop-1",
      sandboxUrl: "http://sandbox:1",
      instanceId: "shop-1",
    });
  });
});

describe("dataUrlFrom", () => {
  it.each([
    ["http://aenv:9000", "http://aenv:9001", "http://aenv:9001"],
    ["http://aenv:9000", "https://data.example/aenv/", "https://data.example/aenv"],
    ["http://localhost:9000", "http://127.0.0.1:9001", "http://127.0.0.1:9001"],
    // A server that listens on loopback, reached through a tunnel or a proxy.
    ["http://aenv:9000", "http://127.0.0.1:9001", "http://aenv:9001"],
    ["https://aenv:9000", "http://[::1]:9001", "https://aenv:9001"],
    // https stays https.
    ["https://aenv", "http://aenv:9001", "https://aenv:9001"],
    ["https://aenv", "http://aenv", "https://aenv:80"],
    // The original reports nothing, or in one of its branches the MCP endpoint.
    ["http://aenv:9000", undefined, "http://aenv:8081"],
    ["http://aenv:9000", "", "http://aenv:8081"],
    ["http://aenv:9000", "http://10.0.0.1:8081/mcp", "http://10.0.0.1:8081"],
    ["http://aenv:9000", "file:///etc/passwd", "http://aenv:8081"],
    ["http://aenv:9000", "http://", "http://aenv:8081"],
  ])("at %s, with %s reported, is %s", (controlUrl, told, dataUrl) => {
    expect(dataUrlFrom(controlUrl, told)).toBe(dataUrl);
  });

  it("never changes from https to http on the host of the control API, and always gives an http URL without a slash at its end", () => {
    const host = fc.constantFrom("aenv", "data.example", "localhost", "127.0.0.1", "[::1]");
    const port = fc.constantFrom("", ":80", ":443", ":8081");
    const url = fc.tuple(fc.constantFrom("http", "https"), host, port).map(([scheme, name, at]) => `${scheme}://${name}${at}`);
    fc.assert(
      fc.property(url, fc.oneof(url, fc.string(), fc.webUrl(), fc.constant(null)), (controlUrl, told) => {
        const dataUrl = dataUrlFrom(controlUrl, told);
        expect(["http:", "https:"]).toContain(new URL(dataUrl).protocol);
        expect(dataUrl.endsWith("/")).toBe(false);
        if (controlUrl.startsWith("https:") && areOnOneHost(controlUrl, dataUrl)) expect(dataUrl).toMatch(/^https:/);
      }),
    );
  });
});

it("resolves pinned addresses to the same addresses", () => {
  const settings = { systemUrl: "other", dummyInstanceIp: "other" };
  for (const options of [
    { systemUrl: "https://x" },
    { systemUrl: "http://x:9000" },
    { controlUrl: "http://a/b", dataUrl: "http://c" },
    { instanceUrl: "http://sandbox/env-instance/a" },
  ]) {
    const addresses = resolveAddresses(options, {});
    expect(resolveAddresses(pinAddresses(addresses), settings)).toEqual(addresses);
  }
});

it.each(["http://", "ftp://host", "not a host"])("rejects the address '%s' and names it", (systemUrl) => {
  expect(() => resolveAddresses({ systemUrl }, {})).toThrow(ValidationError);
  expect(() => resolveAddresses({ systemUrl }, {})).toThrow(systemUrl);
});
