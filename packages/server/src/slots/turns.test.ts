import { describe, expect, it } from "vitest";
import { Turns, type Urgency } from "./turns.ts";

const { signal } = new AbortController();

/** Work that begins when it may, and ends when it is told. */
function workshop(atOnce: number) {
  const turns = new Turns(atOnce);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const enter = (name: string, urgency: Urgency, until = signal) =>
    turns.run(
      urgency,
      () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      },
      until,
    );
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const end = async (name: string) => {
    ends.get(name)?.();
    await settle();
  };
  return { turns, begun, enter, end, settle };
}

describe("turns", () => {
  it("lets so many work at once, and the next in the order in which they came", async () => {
    const { begun, enter, end, settle } = workshop(2);
    for (const name of ["a", "b", "c", "d"]) void enter(name, "now");
    await settle();
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "c"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "c", "d"]);
  });

  it("takes what is needed now before what came earlier but has time", async () => {
    const { begun, enter, end, settle } = workshop(1);
    void enter("a", "now");
    void enter("ahead", "ahead");
    void enter("b", "now");
    await settle();
    await end("a");
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "ahead"]);
  });

  it("keeps places free for what is needed now while something is done ahead", async () => {
    const { begun, enter, end, settle } = workshop(2);
    void enter("ahead 1", "ahead");
    void enter("ahead 2", "ahead");
    await settle();
    expect(begun).toEqual(["ahead 1"]);
    void enter("a", "now");
    await settle();
    expect(begun).toEqual(["ahead 1", "a"]);
    await end("ahead 1");
    expect(begun).toEqual(["ahead 1", "a", "ahead 2"]);
  });

  it("gives a turn on when work fails, and none to those who gave up waiting", async () => {
    const { turns, begun, enter, end, settle } = workshop(1);
    void enter("a", "now");
    const leaving = new AbortController();
    const left = enter("b", "now", leaving.signal);
    const failed = expect(turns.run("now", () => Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
    void enter("c", "now");
    leaving.abort(new Error("gave up"));
    await expect(left).rejects.toThrow("gave up");
    await expect(enter("d", "now", leaving.signal)).rejects.toThrow("gave up");
    await settle();
    await end("a");
    await failed;
    await settle();
    expect(begun).toEqual(["a", "c"]);
  });
});
