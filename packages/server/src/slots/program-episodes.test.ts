import { describe, expect, it } from "vitest";
import { ProgramEpisodes, readAbilities } from "./program-episodes.ts";
import type { Slot } from "./slot.ts";

const { signal } = new AbortController();
const abilities = { prompt: false, reply: false, status: false, stepRewards: false, digest: true, oracle: false, snapshot: true };
const slot: Slot = {
  sandboxId: "a",
  address: { kind: "unix", path: "/none" },
  prefix: "",
  isOwnSandbox: true,
  program: { hasServer: true, healthPath: null },
};

/** A program whose state changes before each of the first digests. */
function programOf(changes: number) {
  let [count, snapshots] = [0, 0];
  const answers: Record<string, () => unknown> = {
    "/state/digest": () => ({ digest: String(Math.min(count++, changes)) }),
    "/state/snapshot": () => ({ count, snapshot: ++snapshots }),
  };
  return new ProgramEpisodes({
    ask: async () => ({ status: 200, text: JSON.stringify({ success: true, data: abilities }) }),
    request: async (_, { path }) => answers[path]?.(),
  });
}

describe("the state of a program", () => {
  it("is stored with the digest of exactly this state, also if a call changes it meanwhile", async () => {
    expect(await programOf(0).store("a", slot, signal)).toEqual({ snapshot: { count: 1, snapshot: 1 }, digest: "0" });
    expect(await programOf(2).store("a", slot, signal)).toEqual({ snapshot: { count: 3, snapshot: 2 }, digest: "2" });
  });

  it("is not stored if its digest is another one each time", async () => {
    await expect(programOf(100).store("a", slot, signal)).rejects.toMatchObject({ code: "snapshot.unsupported" });
  });
});

it("a server that answers GET /episode with anything else has no episodes", () => {
  const envelope = (data: unknown) => JSON.stringify({ success: true, data });
  expect(readAbilities({ status: 200, text: envelope(abilities) })).toMatchObject({ digest: true, snapshot: true, hear: false });
  for (const text of ["hello", "[]", "{}", envelope(null), envelope({ prompt: true }), JSON.stringify({ success: false, error: "no" })])
    expect([text, readAbilities({ status: 200, text })]).toEqual([text, null]);
  expect(readAbilities({ status: 404, text: envelope(abilities) })).toBeNull();
});
