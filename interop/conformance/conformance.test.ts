import { type Served, serve } from "@aenv/kit";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fixture } from "./fixture.ts";
import notApplicable from "./not-applicable.json" with { type: "json" };
import { type Check, type Findings, listScenarios, runSuite } from "./suite.ts";

const REVISIONS = ["2025-11-25", "2026-07-28"] as const;

/** `scenario`, or `scenario:check` if only that check does not apply. */
const excused = new Set(notApplicable.flatMap((entry) => entry.scenarios));

describeNeeding("conformance", "the official MCP conformance suite", () => {
  let scenarios: ReadonlyMap<string, readonly string[]>;
  let served: Served;
  let tree: Tree;
  const found = new Map<string, Findings>();

  beforeAll(async () => {
    tree = temporaryTree();
    scenarios = await listScenarios();
    served = await serve(fixture, { name: "conformance", port: 0 });
    for (const revision of REVISIONS) found.set(revision, await runSuite(served.url, `${tree.path}/${revision}`, revision));
    const all = await runSuite(served.url, `${tree.path}/all`);
    found.set("extension", new Map([...all].filter(([name]) => scenarios.get(name)?.includes("extension"))));
  });

  afterAll(async () => {
    await served?.close();
    tree?.[Symbol.dispose]();
  });

  it.each([...REVISIONS, "extension"])("runs all scenarios for %s", (group) => {
    const expected = [...scenarios].filter(([, groups]) => groups.includes(group)).map(([name]) => name);
    expect(expected.length).toBeGreaterThan(0);
    expect([...(found.get(group)?.keys() ?? [])].sort()).toEqual(expected.sort());
  });

  it.each([...REVISIONS, "extension"])("has only failures that do not apply for %s", (group) => {
    const wrong: string[] = [];
    for (const [scenario, checks] of found.get(group) ?? []) {
      for (const check of checks) {
        const isExcused = excused.has(`${scenario}:${check.id}`) || (excused.has(scenario) && !isOfWire(check));
        if (isWrong(check) && !isExcused) wrong.push(`${scenario}: ${check.status} ${check.id}: ${check.errorMessage}`);
      }
      if (!hasProved(checks) && !excused.has(scenario)) wrong.push(`${scenario}: nothing was checked`);
    }
    expect(wrong).toEqual([]);
  });

  it("has no entry in not-applicable.json that passes now or is not in the suite", () => {
    const stale = [...excused].filter((entry) => {
      const runs = [...found.values()].filter((findings) => findings.has(scenarioOf(entry)));
      return runs.length === 0 || !runs.every((findings) => isNeeded(entry, findings));
    });
    expect(stale).toEqual([]);
  });
});

function scenarioOf(entry: string): string {
  return entry.split(":")[0] ?? "";
}

/** True if the suite fails without this entry. */
function isNeeded(entry: string, findings: Findings): boolean {
  const checks = findings.get(scenarioOf(entry)) ?? [];
  const checkId = entry.split(":")[1];
  if (checkId !== undefined) return checks.some((check) => check.id === checkId && isWrong(check));
  return !hasProved(checks) || checks.some((check) => isWrong(check) && !isOfWire(check));
}

function isWrong({ status }: Check): boolean {
  return status === "FAILURE" || status === "WARNING";
}

/** The suite checks every message against the protocol's schema in all scenarios; these failures are never accepted. */
function isOfWire({ id }: Check): boolean {
  return id.startsWith("wire-schema-");
}

function hasProved(checks: readonly Check[]): boolean {
  return checks.some((check) => check.status === "SUCCESS" && !isOfWire(check));
}
