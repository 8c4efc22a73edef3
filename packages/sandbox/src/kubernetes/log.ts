import { setTimeout } from "node:timers/promises";
import { boundedLines } from "@aenv/contract";
import { LastLines } from "../host/last-lines.ts";
import type { KubernetesApi } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { askedPauseMs } from "./api/retry.ts";
import { REFUSED_MS } from "./api/watch.ts";

const MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;

/** The output of a pod's container, which its node keeps until the pod is deleted. */
export class PodLog {
  readonly #api: KubernetesApi;
  readonly #path: string;
  readonly #container: string;

  /** `path` is that of the pod in the API. */
  constructor(api: KubernetesApi, path: string, container: string) {
    this.#api = api;
    this.#path = `${path}/log`;
    this.#container = container;
  }

  async tail(lines: number): Promise<string[]> {
    if (lines <= 0) return [];
    const last = new LastLines(lines);
    const signal = AbortSignal.timeout(TAIL_TIMEOUT_MS);
    try {
      for await (const line of boundedLines(await this.#open({ tailLines: String(lines) }, signal), LOG_LIMITS)) last.push(line);
    } catch (error) {
      // Not started yet, or deleted.
      if (!isKubernetesError(error, 400, 404)) throw error;
    }
    return last.lines;
  }

  /**
   * Lines from this moment on, until the signal fires, `hasEnded`, or the account may not read them. The stream is opened again if it
   * breaks.
   */
  follow(signal: AbortSignal, hasEnded: () => boolean): AsyncIterable<string> {
    // The time is taken now, not when the first line is requested.
    return this.#follow(nanoseconds(new Date().toISOString()) as bigint, signal, hasEnded);
  }

  async *#follow(from: bigint, signal: AbortSignal, hasEnded: () => boolean): AsyncGenerator<string, void, undefined> {
    let last = from;
    let pauseMs = MIN_PAUSE_MS;
    let refusedAt: number | null = null;
    while (!signal.aborted) {
      const wasOver = hasEnded();
      let askedMs = 0;
      try {
        // The API reads whole seconds only.
        const since = { follow: "true", timestamps: "true", sinceTime: secondOf(last) };
        const stream = await this.#open(since, signal);
        pauseMs = MIN_PAUSE_MS;
        refusedAt = null;
        for await (const line of boundedLines(stream, LOG_LIMITS)) {
          const at = line.indexOf(" ");
          const time = nanoseconds(line.slice(0, at));
          if (time === null || time <= last) continue;
          last = time;
          yield line.slice(at + 1);
        }
      } catch (error) {
        if (signal.aborted || isKubernetesError(error, 404)) return;
        refusedAt = isKubernetesError(error, 403) ? (refusedAt ?? Date.now()) : null;
        if (refusedAt !== null && Date.now() - refusedAt >= REFUSED_MS) return;
        askedMs = askedPauseMs(error) ?? 0;
      }
      if (wasOver) return;
      await setTimeout(Math.max(pauseMs, askedMs), undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  #open(query: Readonly<Record<string, string>>, signal: AbortSignal) {
    return this.#api.stream(this.#path, { container: this.#container, ...query }, signal);
  }
}

/** Nodes keep longer lines in parts of 16 KiB. */
const LOG_LIMITS = { maxLineLength: 1_024 ** 2 };
const TAIL_TIMEOUT_MS = 10_000;

/** A time of the API, which leaves out zeros at the end of the fraction; null if it is none. */
export function nanoseconds(time: string): bigint | null {
  const [, second, fraction = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)$/.exec(time) ?? [];
  if (second === undefined) return null;
  return BigInt(Date.parse(`${second}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

function secondOf(time: bigint): string {
  return new Date(Number(time / 1_000_000n)).toISOString().replace(/\.\d+Z$/, "Z");
}
