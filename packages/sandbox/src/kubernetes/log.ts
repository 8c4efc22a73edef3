import { setTimeout } from "node:timers/promises";
import type { KubernetesApi } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { linesOf } from "./api/lines.ts";

const PAUSE_MS = 250;

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
    const all: string[] = [];
    const signal = AbortSignal.timeout(TAIL_TIMEOUT_MS);
    try {
      for await (const line of linesOf(await this.#open({ tailLines: String(lines) }, signal))) all.push(line);
    } catch (error) {
      // Not started yet, or deleted.
      if (!isKubernetesError(error, 400, 404)) throw error;
    }
    return all.slice(-lines);
  }

  /** Lines from this moment on, until the signal fires or `hasEnded`. The stream is opened again if it breaks. */
  follow(signal: AbortSignal, hasEnded: () => boolean): AsyncIterable<string> {
    // The time is taken now, not when the first line is requested.
    return this.#follow(nanoseconds(new Date().toISOString()) as bigint, signal, hasEnded);
  }

  async *#follow(from: bigint, signal: AbortSignal, hasEnded: () => boolean): AsyncGenerator<string, void, undefined> {
    let last = from;
    while (!signal.aborted) {
      const wasOver = hasEnded();
      try {
        // The API reads whole seconds only.
        const since = { follow: "true", timestamps: "true", sinceTime: secondOf(last) };
        for await (const line of linesOf(await this.#open(since, signal))) {
          const at = line.indexOf(" ");
          const time = nanoseconds(line.slice(0, at));
          if (time === null || time <= last) continue;
          last = time;
          yield line.slice(at + 1);
        }
      } catch (error) {
        if (signal.aborted || isKubernetesError(error, 404)) return;
      }
      if (wasOver) return;
      await setTimeout(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #open(query: Readonly<Record<string, string>>, signal: AbortSignal) {
    return this.#api.stream(this.#path, { container: this.#container, ...query }, signal);
  }
}

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
