import type { ModelTurn } from "@aenv/contract";
import { AggregatorRegistry, Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import { CallMetrics, type MetricValues, MS } from "./call-metrics.ts";
import { ClusterMetrics, type ClusterSource } from "./cluster-metrics.ts";
import { readMetrics } from "./read-metrics.ts";

export interface MetricSources {
  readonly liveInstances: () => Promise<number> | number;
  readonly pool: () => ReadonlyMap<string, { readonly ready: number; readonly target: number }>;
  /** Processes that were started as copies of a stored one. */
  readonly poolCopies: () => number;
  readonly hosts: () => number;
  readonly waiting: () => number;
  /** Starts that wait because the machine is short of memory. */
  readonly waitingForMemory: () => number;
  readonly frozen: () => Promise<number> | number;
  readonly frozenTotals: () => { readonly savedCpuMs: number; readonly frozenMs: number };
  /** Bundles without ready processes because the last start failed. */
  readonly poolTroubled: () => number;
  readonly rollouts: () => { readonly running: number; readonly waiting: number };
  readonly verifications: () => { readonly running: number; readonly waiting: number };
  /** Processes that serve the data port, and how many of them were replaced since the start. */
  readonly workerProcesses: () => { readonly running: number; readonly replaced: number };
  /** What the workers have counted, the ended ones included; null if this process serves the data port itself. */
  readonly workers: () => Promise<readonly MetricValues[]> | null;
  /** The engine kubernetes; null with other engines. */
  readonly cluster: ClusterSource | null;
}

/** The Prometheus metrics. Labels are route templates, APIs and codes; never ids, owners or paths, which are unbounded. */
export class Metrics {
  readonly registry = new Registry();
  readonly #sources: MetricSources;
  readonly #requests: Counter;
  readonly #requestMs: Histogram;
  readonly #calls: CallMetrics;
  readonly #starts: Counter;
  readonly #startMs: Histogram;
  readonly #ends: Counter;
  readonly #rollouts: Counter;
  readonly #modelCalls: Counter;
  readonly #modelTokens: Counter;
  readonly #cluster: ClusterMetrics | null;

  constructor(sources: MetricSources) {
    this.#sources = sources;
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new Counter({
      name: "aenv_api_requests_total",
      help: "Requests on the control port",
      labelNames: ["method", "endpoint", "status"],
      registers,
    });
    this.#requestMs = new Histogram({
      name: "aenv_api_request_duration_ms",
      help: "Duration of a request on the control port",
      labelNames: ["method", "endpoint"],
      buckets: MS,
      registers,
    });
    this.#calls = new CallMetrics(this.registry);
    this.#starts = new Counter({ name: "aenv_instance_starts_total", help: "Starts by result", labelNames: ["result"], registers });
    this.#startMs = new Histogram({
      name: "aenv_instance_start_duration_ms",
      help: "Duration from the request to a running instance",
      buckets: MS,
      registers,
    });
    this.#ends = new Counter({ name: "aenv_instance_ends_total", help: "Ended instances", labelNames: ["status"], registers });
    this.#rollouts = new Counter({
      name: "aenv_rollouts_total",
      help: "Rollouts that are done, by outcome: scored, or the cause of being unscored",
      labelNames: ["outcome"],
      registers,
    });
    this.#modelCalls = new Counter({
      name: "aenv_model_calls_total",
      help: "Calls of models by environments, by result: answered, or failed",
      labelNames: ["result"],
      registers,
    });
    this.#modelTokens = new Counter({
      name: "aenv_model_tokens_total",
      help: "Tokens of these calls, as the endpoints count them, by kind: prompt or completion",
      labelNames: ["kind"],
      registers,
    });
    const { cluster } = sources;
    this.#cluster = cluster === null ? null : new ClusterMetrics(this.registry, () => cluster);
    const { gauge, total } = readMetrics(this.registry);
    gauge("aenv_instances_live", "Instances that are starting or running", sources.liveInstances);
    gauge("aenv_workers", "Processes that serve the data port", () => sources.workerProcesses().running);
    total("aenv_worker_replacements_total", "Workers that ended and were replaced", () => sources.workerProcesses().replaced);
    gauge("aenv_hosts", "Shared processes", sources.hosts);
    gauge("aenv_starts_waiting", "Queued starts", sources.waiting);
    gauge("aenv_starts_waiting_for_memory", "Starts that wait because the machine is short of memory", sources.waitingForMemory);
    gauge("aenv_instances_frozen", "Idle instances whose sandboxes are frozen", sources.frozen);
    total(
      "aenv_frozen_seconds_total",
      "Time that sandboxes were frozen, at the end of each freeze",
      () => sources.frozenTotals().frozenMs / 1_000,
    );
    total(
      "aenv_frozen_cpu_seconds_saved_total",
      "CPU time that frozen sandboxes would have used at the rate that was measured before each freeze",
      () => sources.frozenTotals().savedCpuMs / 1_000,
    );
    const sumOf = (field: "ready" | "target", isBlank: boolean) => () =>
      [...sources.pool()].filter(([name]) => (name === "blank") === isBlank).reduce((sum, [, size]) => sum + size[field], 0);
    gauge("aenv_pool_blank_ready", "Blank processes that are ready", sumOf("ready", true));
    gauge("aenv_pool_blank_target", "Target number of ready blank processes", sumOf("target", true));
    gauge("aenv_pool_prepared_ready", "Prepared processes that are ready", sumOf("ready", false));
    gauge("aenv_pool_prepared_target", "Target number of ready prepared processes", sumOf("target", false));
    total("aenv_pool_copies_total", "Processes that were started as copies of a stored one (warmStart)", sources.poolCopies);
    gauge("aenv_pool_backed_off", "Kinds of ready processes whose start failed and is retried after a pause", sources.poolTroubled);
    gauge("aenv_rollouts_running", "Rollouts that this server plays", () => sources.rollouts().running);
    gauge("aenv_rollouts_waiting", "Rollouts that wait for their turn at this server", () => sources.rollouts().waiting);
    gauge("aenv_verifications_running", "Running verifications of bundles", () => sources.verifications().running);
    gauge("aenv_verifications_waiting", "Queued verifications of bundles", () => sources.verifications().waiting);
  }

  /** In the text format of Prometheus. Numbers of workers are added to those of this process. */
  async text(): Promise<string> {
    const workers = this.#sources.workers();
    if (workers === null) return this.registry.metrics();
    const own = await this.registry.getMetricsAsJSON();
    return AggregatorRegistry.aggregate([own, ...(await workers)]).metrics();
  }

  request(method: string, endpoint: string, status: number, durationMs: number): void {
    this.#requests.inc({ method, endpoint, status });
    this.#requestMs.observe({ method, endpoint }, durationMs);
  }

  call(api: string, status: number, end: string, durationMs: number): void {
    this.#calls.call(api, status, end, durationMs);
  }

  started(result: "running" | "failed", durationMs: number): void {
    this.#starts.inc({ result });
    if (result === "running") this.#startMs.observe(durationMs);
  }

  podReady(durationMs: number): void {
    this.#cluster?.podReady(durationMs);
  }

  rolledOut(outcome: string): void {
    this.#rollouts.inc({ outcome });
  }

  /** A call of a model by an environment has ended; null without an answer. */
  modelCalled(turn: Pick<ModelTurn, "prompt_tokens" | "completion_tokens"> | null): void {
    this.#modelCalls.inc({ result: turn === null ? "failed" : "answered" });
    this.#modelTokens.inc({ kind: "prompt" }, turn?.prompt_tokens ?? 0);
    this.#modelTokens.inc({ kind: "completion" }, turn?.completion_tokens ?? 0);
  }

  ended(status: string): void {
    this.#ends.inc({ status });
  }
}
