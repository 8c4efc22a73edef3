import { describe, expect, it } from "vitest";
import { FairQueue } from "./fair-queue.ts";

/** Work that ends when it is told to. */
function work(): { promise: Promise<void>; end: () => void } {
  let end: () => void = () => {};
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { promise, end };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a fair queue", () => {
  it("takes owners in turn, however many one of them asks for", async () => {
    const queue = new FairQueue({ atOnce: 1, maxWaiting: 100 });
    const first = work();
    const order: string[] = [];
    const busy = queue.run("greedy", () => first.promise);
    const waiting = ["greedy", "greedy", "greedy", "modest", "other"].map((owner) =>
      queue.run(owner, async () => {
        order.push(owner);
      }),
    );
    first.end();
    await Promise.all([busy, ...waiting]);
    expect(order).toEqual(["greedy", "modest", "other", "greedy", "greedy"]);
  });

  it("never lets more work at once than it is told", async () => {
    const queue = new FairQueue({ atOnce: 3, maxWaiting: 100 });
    let working = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        queue.run(`o${n % 4}`, async () => {
          most = Math.max(most, ++working);
          await settled();
          working--;
        }),
      ),
    );
    expect(most).toBe(3);
    expect(queue.depth).toBe(0);
  });

  it("gives one owner no more places than its own limit, and lets others pass by those that wait for it", async () => {
    const queue = new FairQueue({ atOnce: 3, atOncePerOwner: 2, maxWaiting: 100 });
    const greedy = [work(), work(), work()];
    const began: string[] = [];
    const running = greedy.map(({ promise }, n) =>
      queue.run("greedy", () => {
        began.push(`greedy ${n}`);
        return promise;
      }),
    );
    await queue.run("modest", async () => void began.push("modest"));
    expect(began).toEqual(["greedy 0", "greedy 1", "modest"]);
    expect(queue.depth).toBe(1);
    greedy[0]?.end();
    await running[0];
    await settled();
    expect(began.at(-1)).toBe("greedy 2");
    for (const { end } of greedy) end();
    await Promise.all(running);
  });

  it("refuses an owner of whom too many wait, and nobody else", async () => {
    const queue = new FairQueue({ atOnce: 1, maxWaiting: 100, maxWaitingPerOwner: 1, what: "verifications" });
    const first = work();
    const busy = queue.run("a", () => first.promise);
    const waiting = ["a", "b"].map((owner) => queue.run(owner, async () => {}));
    await expect(queue.run("a", async () => {})).rejects.toThrow("1 verifications of 'a' are waiting already; try again in a moment");
    first.end();
    await Promise.all([busy, ...waiting]);
  });

  it("refuses at once when too many wait, and says when to come again", async () => {
    const queue = new FairQueue({ atOnce: 1, maxWaiting: 1 });
    const first = work();
    const busy = queue.run("a", () => first.promise);
    const second = queue.run("a", async () => {});
    await expect(queue.run("b", async () => {})).rejects.toMatchObject({ code: "quota.exceeded", details: { retryAfterSeconds: 1 } });
    first.end();
    await Promise.all([busy, second]);
  });

  it("forgets those who give up, and goes on when work fails", async () => {
    const queue = new FairQueue({ atOnce: 1, maxWaiting: 10 });
    const first = work();
    const busy = queue.run("a", () => first.promise.then(() => Promise.reject(new Error("broken"))));
    const controller = new AbortController();
    const impatient = queue.run("b", async () => "done", controller.signal);
    controller.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    first.end();
    await expect(busy).rejects.toThrow("broken");
    expect(await queue.run("c", async () => "next")).toBe("next");
  });
});
