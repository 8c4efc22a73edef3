import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dataUrlOf } from "./data-url.ts";

const everywhere = { publicUrl: null, host: "0.0.0.0", localUrl: "http://localhost:8081" };

describe("the data port's address in links", () => {
  it("is the configured public URL, whatever the request's Host is", () => {
    const told = dataUrlOf({ ...everywhere, publicUrl: "https://agents.example/" });
    expect(told("elsewhere.example:8080")).toBe("https://agents.example");
  });

  it("is the address that the server listens on, if it is one", () => {
    const one = dataUrlOf({ publicUrl: null, host: "10.0.0.5", localUrl: "http://10.0.0.5:8081" });
    expect(one("elsewhere.example:8080")).toBe("http://10.0.0.5:8081");
  });

  it.each([
    ["aenv.example:8080", "http://aenv.example:8081"],
    ["10.0.0.5", "http://10.0.0.5:8081"],
    ["[fd00::5]:8080", "http://[fd00::5]:8081"],
    ["AENV.example", "http://aenv.example:8081"],
  ])("is where the client has found a server that listens everywhere: %s", (host, url) => {
    expect(dataUrlOf(everywhere)(host)).toBe(url);
    expect(dataUrlOf({ ...everywhere, host: "::" })(host)).toBe(url);
  });

  it("takes nothing from a Host header but a plain host", () => {
    for (const host of [undefined, "", "a/b", "a@b", "a b", "a:b", "a?x", "a#x", "[x]", "-a", "a\r\nx: y", "a:8080:1"]) {
      expect(dataUrlOf(everywhere)(host), String(host)).toBe("http://localhost:8081");
    }
    fc.assert(fc.property(fc.string(), (host) => void expect(dataUrlOf(everywhere)(host)).toMatch(/^http:\/\/[\w.[\]:-]+:8081$/)));
  });
});
