import { Breaks } from "./breaks.ts";
import type { Rollouts } from "./rollouts.ts";
import type { OpenResult } from "./stored-results.ts";

export interface ResultsStreamOptions {
  readonly rollouts: Pick<Rollouts, "find" | "resultOf" | "onDone" | "isAlone">;
  readonly keys: readonly string[];
  /** Positions in `keys` whose results the client has already. */
  readonly delivered: ReadonlySet<number>;
  readonly signal: AbortSignal;
  readonly pingMs: number;
  /** How often rollouts that other servers play are looked up. */
  readonly pollMs: number;
}

/** A result and its position in the request, or a sign that the connection is alive. */
export type StreamItem = { readonly kind: "result"; readonly at: number; readonly result: OpenResult } | { readonly kind: "ping" };

/** Rollouts that are looked up at once. */
const BATCH = 200;

/** The results of rollouts in the order in which they are done. Ends after the last one, or when the signal is aborted. */
export async function* streamResults(options: ResultsStreamOptions): AsyncGenerator<StreamItem> {
  const { rollouts, keys, delivered, signal, pingMs, pollMs } = options;
  const pending = new Map<string, number>();
  for (const [at, key] of keys.entries()) if (!delivered.has(at)) pending.set(key, at);
  const done: string[] = [];
  let wake = () => {};
  const remove = rollouts.onDone((key) => {
    if (!pending.has(key)) return;
    done.push(key);
    wake();
  });
  try {
    done.push(...(await doneAmong(rollouts, [...pending.keys()])));
    let pingAt = performance.now() + pingMs;
    while (pending.size > 0 && !signal.aborted) {
      const key = done.shift();
      if (key === undefined) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await waitFor(woken, Math.min(pingAt - performance.now(), rollouts.isAlone ? pingMs : pollMs), signal);
        if (signal.aborted) return;
        if (done.length === 0 && !rollouts.isAlone) done.push(...(await pollSome(rollouts, pending)));
        if (done.length > 0 || performance.now() < pingAt) continue;
        yield { kind: "ping" };
        pingAt = performance.now() + pingMs;
        continue;
      }
      const at = pending.get(key);
      if (at === undefined) continue;
      pending.delete(key);
      const row = await rollouts.find(key);
      const result = row === null ? null : await rollouts.resultOf(row);
      if (result === null) continue;
      yield { kind: "result", at, result };
      pingAt = performance.now() + pingMs;
    }
  } finally {
    remove();
  }
}

/** Looks up some of the pending rollouts; the next call looks up the ones after them. */
async function pollSome(rollouts: ResultsStreamOptions["rollouts"], pending: Map<string, number>): Promise<string[]> {
  const some = [...pending].slice(0, BATCH);
  for (const [key, at] of some) {
    // A map keeps the order of insertion.
    pending.delete(key);
    pending.set(key, at);
  }
  return doneAmong(
    rollouts,
    some.map(([key]) => key),
  );
}

/** Those that are done or gone, in the order in which they were done. */
async function doneAmong(rollouts: ResultsStreamOptions["rollouts"], keys: readonly string[]): Promise<string[]> {
  const found: { readonly key: string; readonly at: string }[] = [];
  const breaks = new Breaks();
  for (let from = 0; from < keys.length; from += BATCH) {
    await Promise.all(
      keys.slice(from, from + BATCH).map(async (key) => {
        const row = await rollouts.find(key);
        if (row === null || row.done !== null) found.push({ key, at: row?.done?.at ?? "" });
      }),
    );
    await breaks.take();
  }
  return found.sort((one, other) => one.at.localeCompare(other.at)).map(({ key }) => key);
}

function waitFor(event: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, ms));
    signal.addEventListener("abort", end, { once: true });
    void event.then(end);
  });
}
