import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hostName, hostRuleFor } from "./host-rule.ts";

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
