import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextState, type SandboxEvent, type SandboxState, STARTED } from "./sandbox-state.ts";

const at = new Date(0);
const plain = ["kept", "taken over", "left", "files lost", "connection closed", "program ended"] as const;
const anyEvent: fc.Arbitrary<SandboxEvent> = fc.oneof(
  fc.record({ kind: fc.constantFrom(...plain) }),
  fc.record({ kind: fc.constant("reason known" as const), reason: fc.constantFrom("one", "two") }),
  fc.record({ kind: fc.constant("exited" as const), reason: fc.constantFrom("three", "four"), at: fc.constant(at) }),
);
const anyEvents = fc.array(anyEvent, { maxLength: 12 });

/** The states before and after each event. */
function statesOf(events: readonly SandboxEvent[]): readonly SandboxState[] {
  const states: SandboxState[] = [STARTED];
  for (const event of events) states.push(nextState(states.at(-1) as SandboxState, event));
  return states;
}

const order = { running: 0, left: 1, ending: 2, exited: 3 };

describe("the life of a sandbox", () => {
  it("never goes back, so what is done at its end is done once", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const kinds = statesOf(events).map(({ kind }) => order[kind]);
        expect(kinds).toEqual(kinds.toSorted());
      }),
    );
  });

  it("has one end, with the first reason that was known, or else the first that was found", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const end = events.findIndex(({ kind }) => kind === "exited");
        const last = statesOf(events).at(-1);
        expect(last?.kind === "exited").toBe(end >= 0);
        if (last?.kind !== "exited") return;
        const reasons = events.flatMap((event, index) =>
          (event.kind === "reason known" && index < end) || index === end ? [(event as { reason: string }).reason] : [],
        );
        expect(last.exit).toEqual({ at, reason: reasons[0] });
      }),
    );
  });

  it("belongs to the process that kept it last, also after its end", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const last = events.findLast(({ kind }) => kind === "kept" || kind === "taken over");
        expect(statesOf(events).at(-1)?.isKept).toBe(last?.kind === "kept");
      }),
    );
  });

  it("ends with its connection unless this process has left it, and with its program in any case", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const state = statesOf(events).at(-1) as SandboxState;
        expect(nextState(state, { kind: "connection closed" }).kind).toBe(state.kind === "running" ? "ending" : state.kind);
        expect(nextState(state, { kind: "program ended" }).kind).toBe(state.kind === "exited" ? "exited" : "ending");
      }),
    );
  });
});
