import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseChallenge } from "./challenge.ts";

describe("the challenge of a registry", () => {
  it.each([
    ['Bearer realm="https://auth.test/token",service="registry",scope="repository:a/b:pull,push"', "https://auth.test/token", "registry"],
    ["bearer service=s , realm=https://auth.test/", "https://auth.test/", "s"],
    ['Basic realm="a", Bearer realm="b"', "b", null],
    ['Negotiate, Bearer error="invalid_token", realm="a\\"b"', 'a"b', null],
  ])("%s names a token server", (header, realm, service) => {
    expect(parseChallenge(header)).toEqual({ scheme: "bearer", realm, service });
  });

  it.each(['Basic realm="bearer of news"', "BASIC", 'Digest a=b, Basic realm="x"'])("%s asks for a password", (header) => {
    expect(parseChallenge(header)).toEqual({ scheme: "basic" });
  });

  it("is none if this client can answer none", () => {
    for (const header of [undefined, "", "Digest realm=x", "Bearer service=x"]) expect(parseChallenge(header)).toBeNull();
  });

  it("is read from any text", () => {
    fc.assert(fc.property(fc.string(), (text) => void parseChallenge(`Bearer ${text}`)));
  });
});
