import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Demand } from "./demand.ts";
import { type Share, share } from "./share.ts";
import { WarmPool } from "./warm-pool.ts";

describe("demand", () => {
  it("is the rate of recent uses, which halves in each half-life", () => {
    const demand = new Demand(0, 20_000);
    for (let at = 0; at < 60_000; at += 500) demand.note(at);
    expect(demand.perSecond(60_000)).toBeCloseTo(1.76, 1);
    expect(demand.perSecond(80_000)).toBeCloseTo(0.88, 1);
    expect(demand.usedAt).toBe(59_500);
    expect([demand.isIdle(60_499, 1_000), demand.isIdle(60_500, 1_000)]).toEqual([false, true]);
  });

  it("is covered while one is replaced, but for a fraction that is ignored", () => {
    const demand = new Demand(0, 10_000);
    for (let at = 0; at < 10_000; at += 50) demand.note(at);
    const expected = (at: number) => demand.expected(at, 500, 0.001);
    expect(expected(10_000)).toBeGreaterThan(2);
    expect([expected(60_000), expected(300_000)]).toEqual([1, 0]);
    expect(demand.expected(60_000, 500, 0.5)).toBe(0);
  });
});

describe("the share of each kind", () => {
  const names = ["a", "b", "c", "d"];
  const step = fc.array(fc.record({ name: fc.constantFrom(...names), upTo: fc.nat(12) }), { maxLength: 4 });
  const wanted = (steps: readonly (readonly Share[])[], name: string) =>
    Math.max(0, ...steps.flat().map((one) => (one.name === name ? one.upTo : 0)));

  /** Room for so many of each kind, and of all together. */
  function budgetOf(total: number, each: number) {
    let left = total;
    const of = new Map<string, number>();
    return (name: string) => {
      const has = of.get(name) ?? 0;
      if (left === 0 || has >= each) return false;
      left--;
      of.set(name, has + 1);
      return true;
    };
  }

  it("is never more than wanted nor than the budget, and uses all of the budget that a kind still wants", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 5 }), fc.nat(30), fc.nat(10), (steps, total, each) => {
        const given = share(steps, budgetOf(total, each));
        const sum = [...given.values()].reduce((all, count) => all + count, 0);
        expect(sum).toBeLessThanOrEqual(total);
        for (const name of names) {
          const most = Math.min(each, wanted(steps, name));
          expect(given.get(name) ?? 0).toBeLessThanOrEqual(most);
          expect((given.get(name) ?? 0) === most || sum === total).toBe(true);
        }
      }),
    );
  });

  it("of an earlier step is not reduced by a later one, and kinds of one step differ by one at most", () => {
    fc.assert(
      fc.property(step, step, fc.nat(30), (first, later, total) => {
        const before = share([first], budgetOf(total, 100));
        const given = share([first, later], budgetOf(total, 100));
        for (const [name, count] of before) expect(given.get(name)).toBeGreaterThanOrEqual(count);
        const equal = share([names.map((name) => ({ name, upTo: 8 }))], budgetOf(total, 100));
        const counts = names.map((name) => equal.get(name) ?? 0);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });
});

interface Made {
  readonly id: number;
  readonly end: () => void;
  readonly ended: Promise<void>;
}

/** Lets what has begun go on a little. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

const BACKOFF = { firstMs: 100, longestMs: 400 };
const TOTAL = 6;

/** A pool of three kinds that each want as many as they are told to. */
function openPool() {
  const clock = { now: 0 };
  const wanted = new Map<string, number>();
  const alive = new Set<Made>();
  const failing = new Set<string>();
  let tries = 0;
  let made = 0;
  let most = 0;
  // Also for kinds that were dropped meanwhile.
  let creating = 0;
  const taken = new Set<Made>();
  const unused = () => alive.size - taken.size;
  const pool: WarmPool<string, Made> = new WarmPool<string, Made>({
    create: async ({ name }) => {
      tries++;
      creating++;
      await turns(5);
      creating--;
      if (failing.has(name)) throw new Error(`no ${name}`);
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      const one = { id: made++, end, ended };
      alive.add(one);
      most = Math.max(most, unused());
      return one;
    },
    destroy: async (one) => {
      // Each is destroyed once.
      expect(alive.delete(one)).toBe(true);
    },
    steps: (kinds) => [kinds.map(({ name }) => ({ name, upTo: wanted.get(name) ?? 0 }))],
    budget: () => {
      let left = TOTAL;
      return () => left-- > 0;
    },
    hasRoom: () => unused() + creating < TOTAL,
    isUnused: ({ name, demand }, now) => (wanted.get(name) ?? 0) === 0 && demand.isIdle(now, 1_000),
    ended: (one) => one.ended,
    halfLifeMs: 1_000,
    backoff: BACKOFF,
    now: () => clock.now,
  });
  const kindOf = (name: string) => pool.find(name) ?? pool.add(name, name);
  return { pool, clock, wanted, alive, taken, failing, kindOf, most: () => most, tries: () => tries };
}

const name = fc.constantFrom("a", "b", "c");
const action = fc.oneof(
  fc.record({ do: fc.constant("take" as const), name }),
  fc.record({ do: fc.constant("want" as const), name, count: fc.nat(8) }),
  fc.record({ do: fc.constantFrom("fail" as const, "work" as const, "drop" as const, "end" as const, "fill" as const), name: name }),
  fc.record({ do: fc.constant("pass" as const), ms: fc.nat(600) }),
  fc.record({ do: fc.constant("trim" as const) }),
  fc.record({ do: fc.constant("room" as const) }),
);

describe("a pool", () => {
  it("loses none and hands none out twice, whatever happens, and keeps none when it is closed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60, size: "max" }), fc.boolean(), async (actions, isAbrupt) => {
        const { pool, clock, wanted, alive, taken, failing, kindOf, most } = openPool();
        for (const which of ["a", "b", "c"]) wanted.set(kindOf(which).name, 2);
        const running: Promise<unknown>[] = [];
        for (const one of actions) {
          if (one.do === "pass") clock.now += one.ms;
          else if (one.do === "trim") running.push(pool.trim().then(() => pool.fillAll()));
          else if (one.do === "room") running.push(pool.makeRoom());
          else if (one.do === "want") wanted.set(one.name, one.count);
          else if (one.do === "fail") failing.add(one.name);
          else if (one.do === "work") failing.delete(one.name);
          else if (one.do === "drop") running.push(pool.drop(kindOf(one.name)));
          else if (one.do === "end") kindOf(one.name).held[0]?.end();
          else if (one.do === "fill") running.push(pool.fill(kindOf(one.name)));
          else {
            const got = pool.take(kindOf(one.name));
            if (got === null) continue;
            expect(taken.has(got)).toBe(false);
            taken.add(got);
          }
          await turns(1);
        }
        const isFound = async () => {
          await Promise.all(running);
          // Kinds that were dropped while one was created destroy it then.
          await turns(20);
          const held = pool.kinds.flatMap((kind) => kind.held);
          expect(new Set([...held, ...taken])).toEqual(alive);
        };
        if (!isAbrupt) await isFound();
        expect(most()).toBeLessThanOrEqual(TOTAL);
        await pool.close(new Error("closed"));
        expect(alive).toEqual(taken);
        await Promise.all(running);
        expect(alive).toEqual(taken);
      }),
      { numRuns: 300 },
    );
  });

  it("holds as many as are wanted after each round, within the budget", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, fc.nat(8)), { maxLength: 10, size: "max" }), async (wishes) => {
        const { pool, wanted, kindOf, alive } = openPool();
        for (const [which, count] of wishes) {
          wanted.set(which, count);
          kindOf(which);
          await pool.trim();
          await pool.fillAll();
        }
        const targets = pool.kinds.map(({ target }) => target);
        expect(pool.kinds.map(({ held }) => held.length)).toEqual(targets);
        const all = [...wanted.values()].reduce((sum, count) => sum + count, 0);
        expect(alive.size).toBe(Math.min(TOTAL, all));
      }),
    );
  });

  it("waits twice as long after each failure, up to the longest, and begins anew after a success", async () => {
    const { pool, clock, wanted, failing, tries, kindOf } = openPool();
    const kind = kindOf("a");
    wanted.set("a", 1);
    pool.retarget();
    const untilTried = async () => {
      const before = tries();
      const since = clock.now;
      for (; tries() === before; clock.now += 50) await pool.fill(kind);
      clock.now -= 50;
      return clock.now - since;
    };
    failing.add("a");
    expect([await untilTried(), await untilTried(), await untilTried(), await untilTried(), await untilTried()]).toEqual([
      0, 100, 200, 400, 400,
    ]);
    failing.clear();
    await untilTried();
    expect([kind.held.length, kind.failure]).toEqual([1, null]);
    failing.add("a");
    wanted.set("a", 2);
    pool.retarget();
    expect([await untilTried(), await untilTried()]).toEqual([0, 100]);
  });

  it("makes room in the kind with the least demand, which is not filled for a while", async () => {
    const { pool, clock, wanted, kindOf } = openPool();
    for (const which of ["a", "b"]) wanted.set(which, 2);
    const [a, b] = [kindOf("a"), kindOf("b")];
    pool.retarget();
    await pool.fillAll();
    pool.take(a);
    await pool.fill(a);
    expect(await pool.makeRoom()).toBe(true);
    await pool.fillAll();
    expect([a.held.length, b.held.length]).toEqual([2, 1]);
    clock.now = 100;
    await pool.fillAll();
    expect(b.held.length).toBe(2);
  });
});
