import { setTimeout as pause } from "node:timers/promises";
import { pauseAfter } from "@aenv/contract";
import { AggregatorRegistry } from "prom-client";
import { type InstanceRow, isLive } from "../instances/row.ts";
import type { MetricValues } from "../operations/call-metrics.ts";
import { ConnectionShares } from "./connection-shares.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./messages.ts";
import { receivedError } from "./sent-error.ts";
import { WorkerLink, type WorkerLinkOptions } from "./worker-link.ts";
import { WorkerProcess } from "./worker-process.ts";

export interface WorkersOptions extends WorkerLinkOptions {
  readonly command: readonly string[];
  readonly count: number;
  readonly settings: WorkerSettings;
  readonly onReplace: (ended: { readonly pid: number; readonly why: string }) => void;
}

interface Worker {
  readonly process: WorkerProcess;
  readonly link: WorkerLink;
  /** Rejects if it cannot serve the port. */
  readonly listening: Promise<void>;
  calls: MetricValues;
  own: MetricValues;
  onMeasured: () => void;
}

/** A worker that lived for less than this is replaced after a pause, which grows. */
const SHORT_LIFE_MS = 10_000;
const BACKOFF = { firstMs: 200, longestMs: 10_000 };
/** A worker that does not confirm within this time may still pass calls that it must refuse, so it is ended. */
const CONFIRM_MS = 5_000;
const MEASURE_MS = 1_000;
const EXIT_MS = 2_000;

/** The processes that serve the data port. One that dies is replaced; the calls that it had in flight are lost, and nothing else. */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #workers = new Set<Worker>();
  readonly #connections: ConnectionShares<Worker>;
  readonly #ending = new Map<string, Promise<void>>();
  /** What workers that have ended had counted. */
  #endedCounts: Promise<MetricValues> = Promise.resolve([]);
  #replaced = 0;
  #failures = 0;
  #isRetiring = false;
  #isDraining = false;
  #isClosed = false;
  readonly #closing = new AbortController();

  private constructor(options: WorkersOptions) {
    this.#options = options;
    const { count, settings } = options;
    this.#connections = new ConnectionShares(settings.config.maxConnections, count, ({ process }, limit) =>
      process.send({ type: "connections", limit }),
    );
  }

  /** Starts all of them, and waits until they listen. */
  static async open(options: WorkersOptions): Promise<Workers> {
    const workers = new Workers(options);
    try {
      await Promise.all(Array.from({ length: options.count }, () => workers.#start().listening));
      return workers;
    } catch (error) {
      await workers.finish(0);
      throw error;
    }
  }

  get pids(): readonly number[] {
    return [...this.#workers].map(({ process }) => process.pid);
  }

  /** How many were replaced since the start. */
  get replaced(): number {
    return this.#replaced;
  }

  /** A row was changed. The workers that have read it use the new one from now on. */
  note(row: InstanceRow): void {
    const told = [...this.#workers].filter(({ link }) => link.note(row));
    if (isLive(row) || told.length === 0) return;
    const confirmed = this.#confirmedBy(told).finally(() => this.#ending.get(row.id) === confirmed && this.#ending.delete(row.id));
    this.#ending.set(row.id, confirmed);
  }

  /** Resolves when no worker passes calls to the ended instance any more. */
  ended(id: string): Promise<void> | undefined {
    return this.#ending.get(id);
  }

  /** Resolves when no worker accepts a revoked token any more. */
  async tokenRevoked(): Promise<void> {
    this.#tell({ type: "token revoked" });
    await this.#confirmedBy([...this.#workers]);
  }

  delegateEnded(token: string): void {
    for (const { link } of this.#workers) link.delegateEnded(token);
  }

  sandboxEnded(sandboxId: string): void {
    this.#tell({ type: "sandbox ended", sandboxId });
  }

  /** What the workers have counted, and those before them. A worker that does not answer in time is included with its last report. */
  async metrics(): Promise<readonly MetricValues[]> {
    const workers = [...this.#workers];
    const measured = workers.map(
      (worker) =>
        new Promise<void>((resolve) => {
          worker.onMeasured = resolve;
        }),
    );
    this.#tell({ type: "measure" });
    await atMost(Promise.all(measured), MEASURE_MS);
    return [await this.#endedCounts, ...workers.flatMap(({ calls, own }) => [calls, own])].filter((values) => values.length > 0);
  }

  /** From now on, connections are closed after their next response. */
  retireConnections(): void {
    this.#isRetiring = true;
    this.#tell({ type: "retire connections" });
  }

  /** Refuses new calls. */
  drain(): void {
    this.#isDraining = true;
    this.#tell({ type: "drain" });
  }

  /** Waits for calls in flight, and ends the workers. */
  async finish(graceMs: number): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort();
    this.#tell({ type: "finish", graceMs });
    const late = setTimeout(() => {
      for (const { process } of this.#workers) process.kill();
    }, graceMs + EXIT_MS);
    await Promise.all([...this.#workers].map(({ process }) => process.exited));
    clearTimeout(late);
  }

  #start(): Worker {
    const { command, settings } = this.#options;
    const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
    // A worker that replaces another is not awaited.
    listening.catch(() => {});
    const onMessage = (message: FromWorker) => {
      switch (message.type) {
        case "listening":
          return resolve();
        case "failed":
          reject(receivedError(message.error));
          return process.release();
        case "finished":
          return process.release();
        case "connections":
          return this.#connections.report(worker, message.open, message.applied);
        case "metrics":
          worker.calls = message.calls;
          if (message.process === undefined) return;
          worker.own = message.process;
          return worker.onMeasured();
        default:
          return link.onMessage(message);
      }
    };
    const process = new WorkerProcess({ command: [...command, "--home", settings.config.home], onMessage });
    const link = new WorkerLink(this.#options, (message) => process.send(message));
    const worker: Worker = { process, link, listening, calls: [], own: [], onMeasured: () => {} };
    this.#workers.add(worker);
    process.send({ type: "open", settings });
    this.#connections.add(worker);
    if (this.#isRetiring) process.send({ type: "retire connections" });
    if (this.#isDraining) process.send({ type: "drain" });
    const startedAt = performance.now();
    void process.exited.then((why) => {
      reject(new Error(`a worker ended before it served the data port: ${why}`));
      this.#onExit(worker, why, performance.now() - startedAt);
    });
    return worker;
  }

  #onExit(worker: Worker, why: string, lifeMs: number): void {
    const { process, link, calls } = worker;
    this.#workers.delete(worker);
    this.#connections.remove(worker);
    link.close();
    worker.onMeasured();
    if (calls.length > 0) this.#keepCounts(calls);
    if (this.#isClosed) return;
    this.#replaced++;
    this.#failures = lifeMs < SHORT_LIFE_MS ? this.#failures + 1 : 0;
    this.#options.onReplace({ pid: process.pid, why });
    void pause(pauseAfter(this.#failures, BACKOFF), undefined, { signal: this.#closing.signal, ref: false }).then(
      () => this.#start(),
      () => {},
    );
  }

  /** Counters never decrease, so what a worker has counted outlives it. */
  #keepCounts(calls: MetricValues): void {
    this.#endedCounts = this.#endedCounts.then((before) => AggregatorRegistry.aggregate([before, calls]).getMetricsAsJSON());
  }

  async #confirmedBy(workers: readonly Worker[]): Promise<void> {
    await Promise.all(
      workers.map(async ({ link, process }) => {
        if (!(await atMost(link.confirmed(), CONFIRM_MS))) process.kill();
      }),
    );
  }

  #tell(message: ToWorker): void {
    for (const { process } of this.#workers) process.send(message);
  }
}

/** False if the work did not end in time. */
async function atMost(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  const over = new AbortController();
  const late = pause(limitMs, false, { signal: over.signal }).catch(() => false);
  const isDone = await Promise.race([work.then(() => true), late]);
  over.abort();
  return isDone;
}
