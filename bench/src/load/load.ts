import { Child } from "../processes/child.ts";
import type { Address, Limits, LoadJob, LoadResult } from "./job.ts";

/** A server under load: its URL and its CPU time. */
export interface Target extends Address {
  cpuUs(): Promise<number>;
}

export interface Sample extends LoadResult {
  readonly perSecond: number;
  /** The server's user and system time, for one turn. */
  readonly cpuUsPerTurn: number;
}

/** A process that sends requests, so that the client does not use the server's CPU time. */
export class Load implements AsyncDisposable {
  readonly #child = new Child(new URL("./worker.ts", import.meta.url));

  async measure(target: Target, job: Omit<LoadJob, keyof Address>, limits: Limits): Promise<Sample> {
    const { url, prefix } = target;
    await this.#child.query("prepare", { ...job, url, ...(prefix !== undefined && { prefix }) } satisfies LoadJob);
    const before = await target.cpuUs();
    const result = await this.#child.query<LoadResult>("run", limits);
    const after = await target.cpuUs();
    await this.#child.query("finish");
    return { ...result, perSecond: (result.turns * 1_000) / result.elapsedMs, cpuUsPerTurn: (after - before) / result.turns };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
