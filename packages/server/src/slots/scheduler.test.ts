import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Scheduler, type Urgency, type WorkLimits } from "./scheduler.ts";

const { signal } = new AbortController();
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Work that ends when the test says so. */
function work(): { promise: Promise<void>; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, end: resolve };
}

describe("a scheduler with several owners", () => {
  const kind = "creations";
  const open = (limits: WorkLimits) => {
    const scheduler = new Scheduler({ [kind]: limits });
    const run = <T>(owner: string, todo: () => Promise<T>, until?: AbortSignal) => scheduler.run({ kind, owner }, todo, until);
    return { scheduler, run };
  };

  it("takes owners in turn, however many requests one of them has", async () => {
    const { run } = open({ atOnce: 1, maxWaiting: 100 });
    const first = work();
    const order: string[] = [];
    const busy = run("greedy", () => first.promise);
    const waiting = ["greedy", "greedy", "greedy", "modest", "other"].map((owner) =>
      run(owner, async () => {
        order.push(owner);
      }),
    );
    first.end();
    await Promise.all([busy, ...waiting]);
    expect(order).toEqual(["greedy", "modest", "other", "greedy", "greedy"]);
  });

  it("never runs more work at once than its limit", async () => {
    const { scheduler, run } = open({ atOnce: 3, maxWaiting: 100 });
    let running = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        run(`o${n % 4}`, async () => {
          most = Math.max(most, ++running);
          await settled();
          running--;
        }),
      ),
    );
    expect(most).toBe(3);
    expect(scheduler.depth(kind)).toBe(0);
  });

  it("runs no more work of one owner than the owner's limit, and lets other owners pass", async () => {
    const { scheduler, run } = open({ atOnce: 3, atOncePerOwner: 2, maxWaiting: 100 });
    const greedy = [work(), work(), work()];
    const began: string[] = [];
    const running = greedy.map(({ promise }, n) =>
      run("greedy", () => {
        began.push(`greedy ${n}`);
        return promise;
      }),
    );
    await run("modest", async () => void began.push("modest"));
    expect(began).toEqual(["greedy 0", "greedy 1", "modest"]);
    expect(scheduler.depth(kind)).toBe(1);
    greedy[0]?.end();
    await running[0];
    await settled();
    expect(began.at(-1)).toBe("greedy 2");
    for (const { end } of greedy) end();
    await Promise.all(running);
  });

  it("refuses an owner with too many requests waiting, and no other owner", async () => {
    const { run } = open({ atOnce: 1, maxWaiting: 100, maxWaitingPerOwner: 1 });
    const first = work();
    const busy = run("a", () => first.promise);
    const waiting = ["a", "b"].map((owner) => run(owner, async () => {}));
    await expect(run("a", async () => {})).rejects.toThrow("1 creations of 'a' are waiting already; try again in a moment");
    first.end();
    await Promise.all([busy, ...waiting]);
  });

  it("refuses at once when too many are waiting, and says when to retry", async () => {
    const { run } = open({ atOnce: 1, maxWaiting: 1 });
    const first = work();
    const busy = run("a", () => first.promise);
    const second = run("a", async () => {});
    await expect(run("b", async () => {})).rejects.toMatchObject({
      code: "quota.exceeded",
      message: "the server is busy: 1 creations are waiting; try again in a moment",
      details: { retryAfterSeconds: 1 },
    });
    first.end();
    await Promise.all([busy, second]);
  });

  it("forgets aborted requests, and continues when work fails", async () => {
    const { scheduler, run } = open({ atOnce: 1, maxWaiting: 10 });
    const first = work();
    const busy = run("a", () => first.promise.then(() => Promise.reject(new Error("broken"))));
    const controller = new AbortController();
    const impatient = run("b", async () => "done", controller.signal);
    controller.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    expect(scheduler.depth(kind)).toBe(0);
    first.end();
    await expect(busy).rejects.toThrow("broken");
    expect(await run("c", async () => "next")).toBe("next");
  });
});

describe("a scheduler with a reserve", () => {
  const kind = "rollouts";

  it("starts another owner's first work at once while one owner's hangs in all places that it can get", async () => {
    const scheduler = new Scheduler({ [kind]: { atOnce: 4, reserve: { places: 4, perOwner: 1 } } });
    const hanging = Array.from({ length: 6 }, work);
    const all = hanging.map(({ promise }) => scheduler.run({ kind, owner: "hangs" }, () => promise));
    expect(scheduler.depth(kind)).toBe(2);
    // Before: four hanging rollouts held all places, and the other owner waited until one of them ended.
    expect(await scheduler.run({ kind, owner: "other" }, async () => "done")).toBe("done");
    for (const { end } of hanging) end();
    await Promise.all(all);
  });

  const limits = fc
    .record({ atOnce: fc.integer({ min: 1, max: 6 }), perOwner: fc.integer({ min: 1, max: 3 }), shares: fc.integer({ min: 1, max: 4 }) })
    .map((all) => ({ ...all, perOwner: Math.min(all.perOwner, all.atOnce) }));
  /** An owner's work arrives, or one that runs ends. */
  const step = fc.oneof(fc.record({ arrives: fc.nat(4) }), fc.record({ ends: fc.nat() }));

  it("keeps an owner with less than its share waiting only if all places are taken, and never a place idle", async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 60 }), async ({ atOnce, perOwner, shares }, steps) => {
        const places = shares * perOwner;
        const scheduler = new Scheduler({ [kind]: { atOnce, reserve: { places, perOwner } } });
        const running: { readonly owner: number; readonly end: () => void }[] = [];
        const waiting = new Map<number, number>();
        for (const one of steps) {
          if ("arrives" in one) {
            const owner = one.arrives;
            waiting.set(owner, (waiting.get(owner) ?? 0) + 1);
            void scheduler.run({ kind, owner: `o${owner}` }, () => {
              waiting.set(owner, (waiting.get(owner) ?? 0) - 1);
              const { promise, end } = work();
              running.push({ owner, end });
              return promise;
            });
          } else if (running.length > 0) running.splice(one.ends % running.length, 1)[0]?.end();
          await settled();
          const owners = [...waiting.keys()];
          const runningOf = (owner: number) => running.filter((its) => its.owner === owner).length;
          const waits = owners.filter((owner) => (waiting.get(owner) ?? 0) > 0);
          expect(running.length).toBeLessThanOrEqual(atOnce + places);
          for (const owner of owners) expect(runningOf(owner)).toBeLessThanOrEqual(atOnce);
          if (waits.length > 0) expect(running.length).toBeGreaterThanOrEqual(atOnce);
          // With more owners than have a share in the reserve, the last ones may find it taken.
          if (owners.length > shares + 1) continue;
          for (const owner of waits) expect(runningOf(owner)).toBeGreaterThanOrEqual(perOwner);
        }
        for (const { end } of running) end();
      }),
    );
  });
});

describe("a scheduler with urgent work and work done ahead", () => {
  const kind = "process starts";

  /** Work that begins when it may, and ends when the test says so. */
  function open(atOnce: number) {
    const scheduler = new Scheduler({ [kind]: { atOnce, aheadAtOnce: 1 } });
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const enter = (name: string, urgency: Urgency, until = signal) =>
      scheduler.run(
        { kind, owner: "ada", urgency },
        () => {
          begun.push(name);
          return new Promise<void>((resolve) => ends.set(name, resolve));
        },
        until,
      );
    const end = async (name: string) => {
      ends.get(name)?.();
      await settled();
    };
    return { scheduler, begun, enter, end };
  }

  it("runs work of one owner in the order of its arrival, up to the limit", async () => {
    const { begun, enter, end } = open(2);
    for (const name of ["a", "b", "c", "d"]) void enter(name, "now");
    await settled();
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "c"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "c", "d"]);
  });

  it("runs urgent work before work done ahead that came earlier", async () => {
    const { begun, enter, end } = open(1);
    void enter("a", "now");
    void enter("ahead", "ahead");
    void enter("b", "now");
    await settled();
    await end("a");
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "ahead"]);
  });

  it("keeps capacity for urgent work while work is done ahead", async () => {
    const { begun, enter, end } = open(2);
    void enter("ahead 1", "ahead");
    void enter("ahead 2", "ahead");
    await settled();
    expect(begun).toEqual(["ahead 1"]);
    void enter("a", "now");
    await settled();
    expect(begun).toEqual(["ahead 1", "a"]);
    await end("ahead 1");
    expect(begun).toEqual(["ahead 1", "a", "ahead 2"]);
  });

  it("starts the next work when work fails, and none that was aborted while it waited", async () => {
    const { scheduler, begun, enter, end } = open(1);
    void enter("a", "now");
    const leaving = new AbortController();
    const left = enter("b", "now", leaving.signal);
    const broken = scheduler.run({ kind, owner: "ada" }, () => Promise.reject(new Error("broken")), signal);
    const failed = expect(broken).rejects.toThrow("broken");
    void enter("c", "now");
    leaving.abort(new Error("gave up"));
    await expect(left).rejects.toThrow("gave up");
    await expect(enter("d", "now", leaving.signal)).rejects.toThrow("gave up");
    await settled();
    await end("a");
    await failed;
    await settled();
    expect(begun).toEqual(["a", "c"]);
  });

  it("counts each kind of work on its own", async () => {
    const scheduler = new Scheduler({ creations: { atOnce: 1 }, "process starts": { atOnce: 1 } });
    const first = work();
    // A creation that starts a process would wait for itself otherwise.
    const nested = scheduler.run({ kind: "creations", owner: "ada" }, () =>
      scheduler.run({ kind: "process starts", owner: "ada" }, () => first.promise),
    );
    const second = scheduler.run({ kind: "creations", owner: "ada" }, async () => {});
    expect([scheduler.depth("creations"), scheduler.depth("process starts")]).toEqual([1, 0]);
    first.end();
    await Promise.all([nested, second]);
  });
});
