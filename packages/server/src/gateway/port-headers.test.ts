import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerThroughLink, cookieFrom, cookiesFor, locationFor } from "./port-headers.ts";

const place = { prefix: "/port/abc", port: 3000 };

describe("a redirect of the program behind a link", () => {
  it.each([
    ["/login?next=%2F", "/port/abc/login?next=%2F"],
    ["http://127.0.0.1:3000/login", "/port/abc/login"],
    ["http://localhost:3000", "/port/abc/"],
    ["http://localhost:3000?a=1", "/port/abc/?a=1"],
  ])("to its own %s stays below the link", (location, expected) => {
    expect(locationFor(location, place)).toBe(expected);
  });

  it.each(["https://example.com/", "//example.com/x", "next", "../up", "http://127.0.0.1:3001/", "http://127.0.0.1:30001/"])(
    "to %s is left as it is",
    (location) => {
      expect(locationFor(location, place)).toBe(location);
    },
  );
});

describe("cookies of the program behind a link", () => {
  const word = fc.stringMatching(/^[A-Za-z0-9_]{1,12}$/);

  it("come back under their own names, through the same link only", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(word, word), { maxLength: 5 }), word, word, (pairs, one, two) => {
        fc.pre(one !== two);
        const [here, there] = [
          { prefix: `/port/${one}`, port: 1 },
          { prefix: `/port/${two}`, port: 1 },
        ];
        const sent = pairs.map(([name, value]) => `${name}=${value}`);
        const kept = sent.map((cookie) => cookieFrom(`${cookie}; HttpOnly`, here).split(";")[0]);
        const browser = ["session=of-another-site", ...kept].join("; ");
        expect(cookiesFor(browser, here)).toBe(sent.join("; "));
        expect(cookiesFor(browser, there)).toBe("");
      }),
    );
  });

  it("are limited to the link's path and to the host that set them", () => {
    expect(cookieFrom("a=1; Path=/; Domain=example.com; Secure; HttpOnly", place)).toMatch(
      /^aenv-[0-9a-f]{12}-a=1; Path=\/port\/abc\/; Secure; HttpOnly$/,
    );
    expect(cookieFrom("a=1; path=/app", place)).toContain("; Path=/port/abc/app");
    expect(answerThroughLink({ "set-cookie": ["a=1", "b=2"], etag: "x" }, place)).toEqual({
      etag: "x",
      "referrer-policy": "same-origin",
      "set-cookie": [expect.stringMatching(/-a=1$/), expect.stringMatching(/-b=2$/)],
    });
  });
});

describe("at a link's own host name", () => {
  const own = { prefix: "", port: 3000 };

  it("redirects keep their paths, and cookies their names and paths, but not a domain that other links share", () => {
    expect(locationFor("http://localhost:3000/login", own)).toBe("/login");
    expect(cookieFrom("a=1; Path=/app; Domain=links.example; HttpOnly", own)).toBe("a=1; Path=/app; HttpOnly");
    expect(cookiesFor("a=1; b=2", own)).toBe("a=1; b=2");
  });
});

describe.each([place, { prefix: "", port: 3000 }])("a response through a link at '$prefix'", (at) => {
  it("has no header that changes what a browser does with other links", () => {
    const wide = {
      "service-worker-allowed": "/",
      "clear-site-data": '"*"',
      "alt-svc": 'h2="evil.example:443"',
      "strict-transport-security": "max-age=1; includeSubDomains",
      nel: "{}",
      "report-to": "{}",
    };
    expect(answerThroughLink({ ...wide, etag: "x", "referrer-policy": "no-referrer" }, at)).toEqual({
      etag: "x",
      "referrer-policy": "no-referrer",
    });
  });
});
