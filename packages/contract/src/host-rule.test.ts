import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hostName, hostRuleFor, isOriginOf } from "./host-rule.ts";

/** What is no host and port: user information, a path, a port that is none, several hosts in one, nothing. */
const odd = [
  "",
  " ",
  "evil.example@localhost",
  "evil.example:80@localhost",
  "user:password@127.0.0.1:8080",
  "localhost:abc",
  "localhost:",
  "localhost:99999",
  "localhost:80:80",
  "localhost/evil",
  "localhost?evil",
  "localhost#evil",
  "localhost\\evil",
  "localhost, evil.example",
  "localhost evil.example",
  "[::1",
  "::1",
  "[localhost]",
  "http://localhost",
  "%6cocalhost",
  "l\u00f6calhost",
  "a".repeat(300),
];

describe("a server on loopback", () => {
  it("accepts loopback's names and allowedHosts, whatever the request before had", () => {
    const rule = hostRuleFor("127.0.0.1", ["lab.example"]);
    const refused = [undefined, "", "evil.example", "evil.example:80", "localhost.evil.example", "lab.example.evil"];
    for (const host of refused) expect(() => rule.check({ host })).toThrow(/does not answer to Host/);
    for (const known of ["localhost:8081", "127.0.0.1", "[::1]:9", "lab.example"]) {
      rule.check({ host: known });
      for (const host of refused) expect(() => rule.check({ host })).toThrow(/does not answer to Host/);
      expect(() => rule.check({ host: known, origin: "http://evil.example" })).toThrow(/does not answer to Origin/);
      rule.check({ host: known, origin: "http://localhost:3000" });
    }
  });
});

describe("a server that listens beyond loopback", () => {
  it("accepts any plain host name", () => {
    const rule = hostRuleFor("0.0.0.0", []);
    for (const host of ["anything.example", "my_service:8080", "10.0.0.1", "[fe80::1]:80", "EXAMPLE.org"]) rule.check({ host });
    rule.check({ host: "anything.example", origin: "https://console.example" });
    // HTTP/1.0 has no Host.
    rule.check({});
  });
});

describe.each(["127.0.0.1", "0.0.0.0"])("a server on %s", (listenHost) => {
  it.each(odd)("refuses the Host '%s'", (host) => {
    expect(() => hostRuleFor(listenHost, ["evil.example"]).check({ host })).toThrow(/does not answer to Host/);
  });

  it("refuses two Host headers, even if one of them is allowed", () => {
    const rule = hostRuleFor(listenHost, []);
    const raw = ["Host", "localhost", "Accept", "host", "HOST", "localhost"];
    expect(() => rule.check({ host: "localhost" }, raw)).toThrow(/several Host headers/);
    rule.check({ host: "localhost" }, raw.slice(0, 4));
  });
});

describe("a request of a page", () => {
  const rule = hostRuleFor("127.0.0.1", ["lab.example"]);
  const host = "localhost:8080";

  it.each([
    [{ host }, "POST"],
    [{ host, origin: "http://localhost:8080" }, "POST"],
    [{ host, origin: "http://localhost:8080", "sec-fetch-site": "same-origin" }, undefined],
    [{ host, "sec-fetch-site": "none" }, "GET"],
    [{ host, origin: "https://lab.example", "sec-fetch-site": "same-origin" }, "POST"],
    [{ host: "aenv.example", origin: "https://aenv.example" }, "POST"],
    [{ host: "aenv.example:443", origin: "https://AENV.example" }, "POST"],
    [{ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, "GET"],
  ])("is taken if it is from the server's own origin, from allowedHosts, or a navigation: %j", (headers, method) => {
    expect(() => rule.checkPage({ headers, method })).not.toThrow();
  });

  it.each([
    [{ host, origin: "http://localhost:3000" }, "POST"],
    [{ host, origin: "http://127.0.0.1:8080" }, "POST"],
    [{ host, origin: "http://localhost" }, "POST"],
    [{ host, origin: "https://localhost" }, "POST"],
    [{ host, origin: "null" }, "POST"],
    [{ host, origin: "http://localhost:8080, http://localhost:3000" }, "POST"],
    [{ origin: "http://localhost:8080" }, "POST"],
    [{ host: "aenv.example:80", origin: "https://aenv.example" }, "POST"],
    [{ host, "sec-fetch-site": "same-site" }, "POST"],
    [{ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, "GET"],
    [{ host, origin: "https://lab.example", "sec-fetch-site": "cross-site" }, "POST"],
    [{ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, "POST"],
    [{ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, undefined],
  ])("is refused otherwise: %j", (headers, method) => {
    for (const listenHost of ["127.0.0.1", "0.0.0.0"])
      expect(() => hostRuleFor(listenHost, ["lab.example"]).checkPage({ headers, method })).toThrow(
        /no requests from pages of other origins/,
      );
  });

  it("is refused even from the same origin where that has pages of others", () => {
    const headers = { host, "sec-fetch-site": "same-origin" };
    expect(() => rule.checkPage({ headers, method: "POST" }, "none")).toThrow(/Sec-Fetch-Site 'same-origin'/);
    expect(() => rule.checkPage({ headers: { host, origin: "http://localhost:8080" }, method: "POST" }, "none")).not.toThrow();
  });

  it("has the origin of a host as a URL parser says", () => {
    fc.assert(
      fc.property(fc.constantFrom("http", "https"), fc.domain(), fc.option(fc.nat(65_535)), (scheme, name, port) => {
        const place = port === null ? name : `${name}:${port}`;
        expect(isOriginOf(new URL(`${scheme}://${place}`).origin, place)).toBe(true);
        expect(isOriginOf(`${scheme}://x${place}`, place)).toBe(false);
      }),
    );
  });
});

describe("hostName", () => {
  it("returns the host name as a URL parser does, or null", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.domain(),
          fc.ipV4(),
          fc.ipV6().map((ip) => `[${ip}]`),
        ),
        fc.option(fc.nat(70_000)),
        (name, port) => {
          const host = port === null ? name : `${name}:${port}`;
          const found = hostName(host);
          if (found === null || !URL.canParse(`http://${host}`)) return;
          const url = new URL(`http://${host}`);
          expect([url.username, url.password, url.pathname, url.search, url.hash]).toEqual(["", "", "/", "", ""]);
          // URL writes addresses in their shortest form.
          expect(url.hostname).toBe(new URL(`http://${found}`).hostname);
        },
      ),
    );
  });

  it("accepts every domain and address, with or without a port", () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.ipV4()), fc.nat(65_535), (name, port) => {
        expect(hostName(name)).toBe(name.toLowerCase());
        expect(hostName(`${name}:${port}`)).toBe(name.toLowerCase());
      }),
    );
  });
});
