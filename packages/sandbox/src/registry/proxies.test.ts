import { describe, expect, it } from "vitest";
import { proxyFor } from "./proxies.ts";

const of = (url: string, variables: Readonly<Record<string, string>>) => proxyFor(new URL(url), variables);

describe("the proxy of a URL", () => {
  it("is that of its scheme, in capitals or not", () => {
    const variables = { https_proxy: "http://one:1", HTTP_PROXY: "two:2" };
    expect(of("https://a.test/", variables)).toBe("http://one:1");
    expect(of("http://a.test/", variables)).toBe("http://two:2");
    expect(of("https://a.test/", {})).toBeNull();
  });

  it.each([
    ["*", "https://a.test/", true],
    ["a.test", "https://a.test/", true],
    ["a.test", "https://b.a.test/", true],
    ["a.test", "https://ba.test/", false],
    [".a.test", "https://a.test/", false],
    [".a.test", "https://b.a.test/", true],
    ["*.a.test", "https://b.a.test/", true],
    ["x, A.test:443", "https://a.test/", true],
    ["a.test:80", "https://a.test/", false],
    ["10.0.0.0/8", "https://10.1.2.3/", true],
    ["10.0.0.0/8", "https://11.1.2.3/", false],
    ["10.0.0.0/99", "https://10.1.2.3/", false],
    ["10.1.2.3", "https://10.1.2.3/", true],
    ["fd00::/8", "https://[fd00::1]/", true],
  ])("with no_proxy %s and %s: none is %s", (entries, url, isDirect) => {
    expect(of(url, { https_proxy: "http://p:1", no_proxy: entries }) === null).toBe(isDirect);
  });

  it("is none for this machine", () => {
    for (const host of ["localhost", "127.0.0.1", "127.1.2.3:5000", "[::1]:5000"])
      expect(of(`https://${host}/`, { https_proxy: "http://p:1" })).toBeNull();
  });
});
