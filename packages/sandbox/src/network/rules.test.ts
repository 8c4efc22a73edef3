import { spawnSync } from "node:child_process";
import { type EgressPolicy, parseIpv4Network } from "@aenv/contract";
import { describeNeeding } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressRules, type HomeRules, homeRules, policyRules, removalRules, resolvedRules } from "./rules.ts";

const home: HomeRules = { prefix: "ae00000000_", subnet: parseIpv4Network("10.70.0.0/16") ?? { address: 0, prefix: 0 }, namePort: 20_000 };
const name = `${home.prefix}1`;
const entry = fc.constantFrom(
  "a.com",
  "*.b.com:443",
  "10.0.0.0/8",
  "10.1.0.0/16:80",
  "8.8.8.8",
  "10.1.0.0/16",
  "0.0.0.0/0",
  "169.254.0.0/16",
);
const policies: fc.Arbitrary<EgressPolicy> = fc.oneof(
  fc.constantFrom<EgressPolicy>("none", "open"),
  fc.array(entry, { minLength: 1, maxLength: 8 }).map((allow) => ({ allow })),
);

describe("the rules of a policy", () => {
  it("refuse the machine, its sandboxes and metadata services before they accept anything new, and end by refusing", () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 2 ** 31 }), (policy, mark) => {
        const rules = policyRules(home, name, policy, mark)
          .split("\n")
          .filter((line) => line.startsWith("add rule"));
        expect(rules.at(-1)).toMatch(/ goto refuse$/);
        const firstAccept = rules.findIndex((rule) => rule.includes(`ct mark set ${mark} accept`));
        if (policy === "none") {
          expect(rules).toHaveLength(1);
          return;
        }
        const local = rules.findIndex((rule) => rule.includes("fib daddr type != unicast goto refuse"));
        const forbidden = rules.findIndex((rule) => /169\.254\.0\.0\/16.*10\.70\.0\.0\/16.*goto refuse/.test(rule));
        expect(local).toBeGreaterThan(-1);
        expect(forbidden).toBeGreaterThan(-1);
        expect(firstAccept).toBeGreaterThan(Math.max(local, forbidden));
      }),
    );
  });

  it("touch no table but that of the home", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const all = homeRules(home) + policyRules(home, name, policy, 7) + removalRules(home.prefix, name, "10.70.0.6");
        for (const line of all.trim().split("\n"))
          expect(line).toMatch(/^(?:add|flush|delete) (?:table|set|map|chain|rule|element) inet ae00000000_(?: |$)/);
      }),
    );
  });
});

describeNeeding("network-namespaces", "nft", () => {
  it("accepts the rules, in any order of changes, and again", () => {
    const change = fc.oneof(
      policies.map((policy) => policyRules(home, name, policy, 7)),
      fc.constant(removalRules(home.prefix, name, "10.70.0.6")),
      fc.constant(homeRules(home)),
    );
    const sequences = fc.sample(fc.array(change, { minLength: 1, maxLength: 6 }), 10);
    const open =
      homeRules(home) + addressRules(home.prefix, [{ name, address: "10.70.0.6" }]) + policyRules(home, name, { allow: ["a.com"] }, 7);
    const addresses = [
      { address: "1.2.3.4", port: 443 },
      { address: "1.2.3.4", port: null },
    ];
    const resolved = open + resolvedRules(home.prefix, name, addresses, 60) + resolvedRules(home.prefix, name, addresses, 60);
    for (const rules of [resolved, ...sequences.map((all) => [homeRules(home), ...all].join(""))]) {
      const { stderr } = spawnSync("unshare", ["--net", "nft", "-f", "-"], { input: rules, encoding: "utf8" });
      expect(stderr).toBe("");
    }
  });
});
