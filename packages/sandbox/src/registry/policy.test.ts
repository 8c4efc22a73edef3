import type { lookup } from "node:dns";
import { describe, expect, it } from "vitest";
import { lookupOf } from "./fixtures/lookup.ts";
import { RegistryPolicy, type RegistryPolicyOptions, registryUrl } from "./policy.ts";

const names = { "private.test": ["10.0.0.1"], "public.test": ["8.8.8.8"], "both.test": ["10.0.0.1", "8.8.8.8", "::1"] };
const policy = (options: RegistryPolicyOptions = {}) => new RegistryPolicy({ lookup: lookupOf(names), ...options });

const resolve = (registry: string, options: RegistryPolicyOptions = {}) =>
  new Promise((done) => {
    const url = registryUrl(registry, "https");
    policy(options).destinations(registry).lookup(url, "registry")(url.hostname, { all: true }, (error, found) =>
      done(error?.message ?? found),
    );
  });

describe("a name that a connection is made to", () => {
  it("has its public addresses only, so that no other can be dialled", async () => {
    expect(await resolve("both.test")).toEqual([{ address: "8.8.8.8", family: 4 }]);
    expect(await resolve("private.test")).toContain("has no public address");
  });

  it("that is missing is refused as a private one is, unless it is Docker's registry or the name servers do not answer", async () => {
    expect(await resolve("missing.test")).toContain("has no public address");
    expect(await resolve("docker.io")).toContain("ENOTFOUND");
    const failing = (_: string, __: object, callback: (error: Error) => void) =>
      callback(Object.assign(new Error("later"), { code: "EAI_AGAIN" }));
    expect(await resolve("missing.test", { lookup: failing as unknown as typeof lookup })).toBe("later");
  });

  it("has all its addresses if it is listed", async () => {
    expect(await resolve("both.test", { imageRegistries: ["both.test"] })).toHaveLength(3);
  });
});

describe("a listed host", () => {
  it.each([
    ["private.test", "private.test", true],
    ["private.test", "private.test:443", true],
    ["private.test:443", "private.test", true],
    ["PRIVATE.test", "private.test", true],
    ["private.test", "private.test:5000", false],
    ["private.test:5000", "private.test", false],
    ["other.test", "private.test", false],
    ["[::1]:5000", "[0:0::1]:5000", true],
    ["127.0.0.1:5000", "127.1:5000", true],
  ])("%s allows %s: %s", async (entry, registry, isAllowed) => {
    const asked = policy({ imageRegistries: [entry] }).assertAllowed("image", registry);
    await (isAllowed ? expect(asked).resolves.toBeUndefined() : expect(asked).rejects.toThrow("setting imageRegistries"));
  });

  it("is one of insecureRegistries too", async () => {
    await policy({ insecureRegistries: ["private.test:5000"] }).assertAllowed("image", "private.test:5000");
  });

  it("is a host, and nothing else", () => {
    for (const entry of ["", "https://a.test", "a.test/team", "user@a.test", "::1"])
      expect(() => policy({ imageRegistries: [entry] }), entry).toThrow("imageRegistries has");
  });
});

describe("a registry that Docker or a node is asked to pull from", () => {
  it("is refused if one of its addresses is not public, and left to it if it has none here", async () => {
    for (const registry of ["10.0.0.1", "private.test", "both.test", "127.0.0.1:5000", "0x7f.1:5000"])
      await expect(policy().assertAllowed("team/x", registry), registry).rejects.toMatchObject({
        code: "sandbox.image_unavailable",
        message: expect.stringMatching(/^the image 'team\/x' is refused: its registry .* has no public address/),
      });
    for (const registry of ["public.test", "mirrored.test", "docker.io"]) await policy().assertAllowed("team/x", registry);
  });

  it("is refused at the addresses of this machine, public ones too", async () => {
    const one = { netmask: "", mac: "", internal: false, cidr: null };
    const interfaces = () => ({
      eth0: [
        { ...one, family: "IPv4" as const, address: "9.9.9.9" },
        { ...one, family: "IPv6" as const, address: "2620:fe::fe", scopeid: 0 },
      ],
    });
    for (const registry of ["9.9.9.9:8080", "[2620:fe::fe]:8080", "[::ffff:0909:0909]:8080"])
      await expect(policy({ interfaces }).assertAllowed("team/x", registry), registry).rejects.toThrow("is refused");
    await policy({ interfaces }).assertAllowed("team/x", "8.8.8.8");
  });

  it("is any for a command of the operator", async () => {
    await policy({ imageRegistries: "any" }).assertAllowed("team/x", "127.0.0.1:5000");
  });
});
