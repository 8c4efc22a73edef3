import { messageOf } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeAddress, parseAddress } from "./address.ts";

describe("parseAddress", () => {
  it.each([
    ["redis://cache", { mode: "single", hosts: [{ host: "cache", port: 6379 }], isTls: false, db: 0, prefix: "aenv" }],
    ["rediss://cache:7000/3?prefix=lab", { mode: "single", hosts: [{ host: "cache", port: 7000 }], isTls: true, db: 3, prefix: "lab" }],
    ["redis://[::1]:7000/", { mode: "single", hosts: [{ host: "::1", port: 7000 }], isTls: false, db: 0, prefix: "aenv" }],
    [
      "redis+sentinel://:p%40ss@one,two:5000/main/2?sentinelPassword=s%26t",
      {
        mode: "sentinel",
        hosts: [
          { host: "one", port: 26379 },
          { host: "two", port: 5000 },
        ],
        isTls: false,
        password: "p@ss",
        group: "main",
        db: 2,
        sentinelPassword: "s&t",
        prefix: "aenv",
      },
    ],
    [
      "rediss+cluster://ada:a:b@one:1,two:2",
      {
        mode: "cluster",
        hosts: [
          { host: "one", port: 1 },
          { host: "two", port: 2 },
        ],
        isTls: true,
        username: "ada",
        password: "a:b",
        prefix: "aenv",
      },
    ],
  ])("reads %s", (url, address) => {
    expect(parseAddress(url)).toEqual(address);
  });

  it.each([
    ["redis:cache", "it is not a Redis address"],
    ["redis://", "it is not a Redis address"],
    ["redis://ada:secret", "a host is empty, or its port is not a number"],
    ["redis://:secret@", "it is not a Redis address"],
    ["redis://cache:70000", "a port is not between 1 and 65535"],
    ["redis://one,two", "it has several hosts; for those write redis+sentinel:// or redis+cluster://"],
    ["redis://cache/secret", "its database is not a number"],
    ["redis://cache/0/1", "its path has more than a database"],
    ["redis://cache?password=secret", "after the '?' only prefix is allowed"],
    ["redis://:secret%@cache", "a '%' in it is not followed by two hexadecimal digits; write %25 for a '%'"],
    ["redis+sentinel://one,two", "it does not name the group that the sentinels monitor"],
    ["redis+sentinel://one/main/0/1", "its path has more than a group and a database"],
    ["redis+cluster://one/1", "a cluster has no databases to choose from"],
  ])("refuses %s without repeating it", (url, why) => {
    const read = () => parseAddress(url);
    expect(read).toThrow(
      expect.objectContaining({ code: "store.invalid", message: expect.stringContaining(`cannot be used: ${why}. Write redis`) }),
    );
    expect(read).not.toThrow("secret");
  });

  it("parses any login, host and database of a URL", () => {
    const host = fc.oneof(fc.domain(), fc.ipV4()).filter((name) => !name.includes(","));
    const secret = fc.string({ unit: "grapheme", minLength: 1 });
    fc.assert(
      fc.property(host, fc.integer({ min: 1, max: 65_535 }), secret, secret, fc.nat(15), (name, port, username, password, db) => {
        const url = `redis://${encodeURIComponent(username)}:${encodeURIComponent(password)}@${name}:${port}/${db}`;
        const address = parseAddress(url);
        expect(address).toEqual({ mode: "single", hosts: [{ host: name, port }], isTls: false, username, password, db, prefix: "aenv" });
        expect(describeAddress(address)).toBe(`Redis at ${name}:${port}`);
      }),
    );
  });

  it("does not quote a URL that it refuses", () => {
    const junk = fc.stringMatching(/^[A-Z0-9:@/?#%,[\]]*SECRET[A-Z0-9:@/?#%,[\]]*$/);
    fc.assert(
      fc.property(fc.constantFrom("redis", "rediss", "redis+sentinel", "redis+cluster"), junk, (scheme, rest) => {
        try {
          parseAddress(`${scheme}://${rest}`);
        } catch (error) {
          expect(messageOf(error)).not.toContain("SECRET");
        }
      }),
    );
  });
});

describe("describeAddress", () => {
  it("shows the hosts, never the login", () => {
    const describeUrl = (url: string) => describeAddress(parseAddress(url));
    expect(describeUrl("redis://ada:secret@[::1]:7000/3")).toBe("Redis at [::1]:7000");
    expect(describeUrl("redis+sentinel://:secret@one,two/main?sentinelPassword=secret")).toBe("the Redis sentinel at one:26379,two:26379");
    expect(describeUrl("redis+cluster://:secret@one,two:1")).toBe("the Redis cluster at one:6379,two:1");
  });
});
