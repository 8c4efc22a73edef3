import { type EgressPolicy, parseIpv4Network } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { decideName } from "./names.ts";

const never = [parseIpv4Network("10.70.0.0/16"), parseIpv4Network("203.0.113.1")].filter((one) => one !== null);

describe("the answer for a name", () => {
  const decide = (policy: EgressPolicy, name: string, ...found: string[]) =>
    decideName(
      policy,
      name,
      found.map((address) => ({ address, ttl: 30 })),
      never,
    );

  it("opens the ports of all entries for the name, or every port", () => {
    const policy = { allow: ["a.com:443", "*.com:80", "b.com:1"] };
    expect(decide(policy, "a.com", "1.1.1.1")).toEqual({
      kind: "answer",
      addresses: ["1.1.1.1"],
      opened: [
        { address: "1.1.1.1", port: 443 },
        { address: "1.1.1.1", port: 80 },
      ],
      ttlSeconds: 30,
    });
    expect(decide({ allow: ["a.com:443", "a.com"] }, "a.com", "1.1.1.1")).toMatchObject({ opened: [{ address: "1.1.1.1", port: null }] });
  });

  it.each<[EgressPolicy]>([["none"], [{ allow: ["b.com", "*.a.com", "1.1.1.0/24"] }]])("is a refusal with %j", (policy) => {
    expect(decide(policy, "a.com", "1.1.1.1")).toEqual({ kind: "refused" });
  });

  it.each(["10.70.0.5", "203.0.113.1", "127.0.0.1", "169.254.169.254", "10.1.1.1", "192.168.0.1", "0.0.0.0", "224.0.0.1"])(
    "never leads to %s",
    (address) => {
      for (const policy of ["open" as const, { allow: ["a.com"] }])
        expect(decide(policy, "a.com", address)).toEqual({ kind: "unreachable", address });
      expect(decide("open", "a.com", address, "1.1.1.1")).toMatchObject({ addresses: ["1.1.1.1"], opened: [] });
    },
  );

  it("leads to a private network that is listed, whose entry decides about the ports", () => {
    expect(decide({ allow: ["a.com", "10.1.0.0/16:80"] }, "a.com", "10.1.1.1")).toMatchObject({ addresses: ["10.1.1.1"], opened: [] });
    expect(decide({ allow: ["0.0.0.0/0"] }, "a.com", "10.1.1.1")).toMatchObject({ addresses: ["10.1.1.1"], opened: [] });
    expect(decide({ allow: ["0.0.0.0/0"] }, "a.com", "10.70.0.5")).toMatchObject({ kind: "unreachable" });
  });

  it("has no addresses for a name without any", () => {
    expect(decide("open", "a.com")).toMatchObject({ kind: "answer", addresses: [] });
  });
});
