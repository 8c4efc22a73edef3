import { setTimeout } from "node:timers/promises";
import { boundedLines, parseBoundedJson } from "@aenv/contract";
import type { DockerApi, Json } from "./api.ts";
import { HOME_LABEL, SANDBOX_LABEL } from "./container.ts";

const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;

/** Reports which containers of a home end, from the daemon's stream of events. */
export class ContainerExits {
  readonly #api: DockerApi;
  readonly #homeId: string;
  readonly #onExit: (sandbox: string) => void;
  readonly #onGap: () => void;
  readonly #closing = new AbortController();
  #listening: PromiseWithResolvers<void> = Promise.withResolvers();
  #running: Promise<void> | undefined;

  /** `onGap`: events may have been missed, so all containers have to be inspected. */
  constructor(api: DockerApi, homeId: string, { onExit, onGap }: { onExit: (sandbox: string) => void; onGap: () => void }) {
    this.#api = api;
    this.#homeId = homeId;
    this.#onExit = onExit;
    this.#onGap = onGap;
  }

  /** Resolves when exits are being reported. */
  async listening(): Promise<void> {
    this.#running ??= this.#run();
    await this.#listening.promise;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (let pauseMs = MIN_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        // Podman sends the first name, and filters by the second one.
        const event = ["die", "died"];
        const filters = JSON.stringify({ type: ["container"], event, label: [`${HOME_LABEL}=${this.#homeId}`] });
        const events = await this.#api.stream("GET", "/events", { query: { filters }, signal, headersTimeoutMs: 0 });
        this.#listening.resolve();
        this.#onGap();
        pauseMs = MIN_PAUSE_MS;
        for await (const event of jsonLines(events)) this.#report(event);
        this.#listening = Promise.withResolvers();
      } catch (error) {
        if (signal.aborted) break;
        // Whoever waits now learns why; later callers wait for the next attempt.
        this.#listening.promise.catch(() => undefined);
        this.#listening.reject(error);
        this.#listening = Promise.withResolvers();
      }
      await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
    }
    this.#listening.resolve();
  }

  #report({ Actor: actor }: Json): void {
    const { Attributes: attributes } = (actor ?? {}) as { Attributes?: Readonly<Record<string, string>> };
    const sandbox = attributes?.[SANDBOX_LABEL];
    if (sandbox !== undefined) this.#onExit(sandbox);
  }
}

/** Objects of a stream, one per line. */
export async function* jsonLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Json, void, undefined> {
  for await (const line of boundedLines(stream, { maxLineLength: MAX_LINE })) if (line.trim() !== "") yield parseBoundedJson(line) as Json;
}

/** An event with all labels of its container. */
const MAX_LINE = 1_024 ** 2;
