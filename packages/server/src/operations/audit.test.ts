import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Audit, type AuditEvent, changes, REPEAT_MS } from "./audit.ts";

function open() {
  const written: AuditEvent[] = [];
  const clock = { now: 0 };
  const audit = new Audit({ write: (event) => written.push(event), monotonicMs: () => clock.now });
  return { audit, written, clock };
}

const eve = { owner: null, requestId: "r1", client: "10.0.0.9" };

describe("the audit log", () => {
  it("has a line for every change, with owner and client address", () => {
    const { audit, written } = open();
    const ada = { owner: "ada", requestId: "r1", client: "10.0.0.1" };
    audit.change("instance.created", ["a", "b"], ada);
    audit.change("instance.created", ["c"], ada);
    expect(written).toEqual([
      { event: "instance.created", subjects: ["a", "b"], ...ada },
      { event: "instance.created", subjects: ["c"], ...ada },
    ]);
  });

  it("has one line for a client's refusals of a kind, and then one per interval with their number", () => {
    const { audit, written, clock } = open();
    for (let n = 0; n < 1_000; n++) audit.refused("control", 401, eve);
    audit.refused("control", 403, eve);
    audit.refused("data", 401, eve);
    audit.refused("control", 401, { ...eve, client: "10.0.0.10" });
    expect(written.map((event) => event.event)).toEqual(["refused", "refused", "refused", "refused"]);
    audit.flush();
    expect(written).toHaveLength(4);
    clock.now = REPEAT_MS;
    audit.flush();
    expect(written.slice(4)).toEqual([
      { event: "refused.more", port: "control", status: 401, client: "10.0.0.9", count: 999, seconds: 60 },
    ]);
    audit.refused("control", 401, eve);
    expect(written).toHaveLength(5);
    clock.now = 3 * REPEAT_MS;
    audit.flush();
    clock.now = 5 * REPEAT_MS;
    audit.flush();
    // After a quiet interval a client starts again.
    audit.refused("control", 401, eve);
    expect(written.slice(5).map((event) => event.event)).toEqual(["refused.more", "refused"]);
  });

  it("stays short for an attacker with many clients", () => {
    const { audit, written, clock } = open();
    for (let n = 0; n < 50_000; n++) audit.refused("control", 401, { ...eve, client: `10.0.${n >> 8}.${n & 255}` });
    expect(written.length).toBeLessThan(1_010);
    clock.now = REPEAT_MS;
    audit.flush();
    expect(written.at(-1)).toMatchObject({ event: "refused.more", client: null, count: 48_999 });
  });

  it("counts every refusal, and writes the remaining counts at the end", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ waitMs: fc.nat(REPEAT_MS), client: fc.constantFrom("a", "b"), flushes: fc.boolean() })), (steps) => {
        const { audit, written, clock } = open();
        for (const { waitMs, client, flushes } of steps) {
          clock.now += waitMs;
          audit.refused("data", 429, { ...eve, client });
          if (flushes) audit.flush();
        }
        audit.stopped();
        const counted = written.reduce(
          (sum, event) => sum + (event.event === "refused" ? 1 : event.event === "refused.more" ? event.count : 0),
          0,
        );
        expect(counted).toBe(steps.length);
        expect(written.at(-1)).toEqual({ event: "server.stopped" });
      }),
    );
  });
});

describe("the guide", () => {
  it("has a row for every event of the audit log, and no other", () => {
    const guide = readFileSync(new URL("../../../../docs/guides/monitoring.md", import.meta.url), "utf8");
    const [, section = ""] = /^## Audit trail$(.*?)(?:^## |(?![\s\S]))/ms.exec(guide) ?? [];
    const names = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
    const others: Exclude<AuditEvent["event"], (typeof changes)[number]>[] = [
      "refused",
      "refused.more",
      "server.started",
      "server.stopped",
    ];
    expect(names.filter((name) => name !== "event").sort()).toEqual([...changes, ...others].sort());
  });
});
