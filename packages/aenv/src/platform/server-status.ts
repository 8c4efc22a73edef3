import { type InstanceRecord, isObject, PlatformError, tryJson } from "@aenv/contract";
import { MetricsText } from "./metrics-text.ts";
import type { Platform } from "./platform.ts";

/** What a server does at one moment. Counts of failed instances are those that the server still lists, for ten minutes after they failed. */
export interface ServerStatus {
  readonly url: string;
  readonly at: string;
  readonly ready: boolean;
  readonly store: string;
  readonly disk: string;
  readonly instances: { readonly live: number; readonly frozen: number; readonly sharedProcesses: number };
  readonly queue: Readonly<Record<"starts" | "startsForMemory" | "rollouts" | "verifications", number>>;
  readonly pools: {
    readonly blank: PoolSize;
    readonly prepared: PoolSize;
    /** Kinds of processes whose start failed and is retried. */
    readonly backedOff: number;
  };
  /** Since the server started. */
  readonly totals: Readonly<Record<"started" | "failedStarts" | "calls" | "failedCalls" | "cpuSeconds", number>>;
  readonly memoryBytes: number;
  readonly workers: number;
  /** `done` by outcome, since the server started. */
  readonly rollouts: { readonly running: number; readonly done: Readonly<Record<string, number>> };
  readonly environments: readonly Group[];
  readonly owners: readonly Group[];
  readonly failures: readonly Failed[];
}

interface PoolSize {
  readonly ready: number;
  readonly target: number;
}

export interface Group {
  readonly name: string;
  readonly starting: number;
  readonly running: number;
  readonly failed: number;
}

interface Failed {
  readonly id: string;
  readonly environment: string;
  readonly owner: string;
  readonly at: string;
  readonly reason: string;
}

/** Asks a server; the caller needs an administrator's token. */
export async function readStatus({ url, apiKey, scheduler }: Platform, now: () => Date): Promise<ServerStatus> {
  // First, because its refusal says which role is needed.
  const metrics = new MetricsText(await readText(url, "/metrics", apiKey));
  const [readiness, records] = await Promise.all([readReadiness(url), all(scheduler.eachInstance())]);
  const pool = (kind: string) => ({ ready: metrics.sum(`aenv_pool_${kind}_ready`), target: metrics.sum(`aenv_pool_${kind}_target`) });
  return {
    url,
    at: now().toISOString(),
    ...readiness,
    instances: {
      live: metrics.sum("aenv_instances_live"),
      frozen: metrics.sum("aenv_instances_frozen"),
      sharedProcesses: metrics.sum("aenv_hosts"),
    },
    queue: {
      starts: metrics.sum("aenv_starts_waiting"),
      startsForMemory: metrics.sum("aenv_starts_waiting_for_memory"),
      rollouts: metrics.sum("aenv_rollouts_waiting"),
      verifications: metrics.sum("aenv_verifications_waiting"),
    },
    pools: { blank: pool("blank"), prepared: pool("prepared"), backedOff: metrics.sum("aenv_pool_backed_off") },
    totals: {
      started: metrics.sum("aenv_instance_starts_total", ({ result }) => result === "running"),
      failedStarts: metrics.sum("aenv_instance_starts_total", ({ result }) => result === "failed"),
      calls: metrics.sum("aenv_api_mcp_requests_total"),
      failedCalls: metrics.sum("aenv_api_mcp_requests_total", ({ status = "" }) => status.startsWith("5")),
      cpuSeconds: metrics.sum("process_cpu_seconds_total"),
    },
    memoryBytes: metrics.sum("process_resident_memory_bytes"),
    workers: metrics.sum("aenv_workers"),
    rollouts: { running: metrics.sum("aenv_rollouts_running"), done: metrics.by("aenv_rollouts_total", "outcome") },
    environments: grouped(records, environmentOf),
    owners: grouped(records, ownerOf),
    failures: records
      .filter(({ status }) => status === "Failed")
      .map((one) => ({
        id: one.id,
        environment: environmentOf(one),
        owner: ownerOf(one),
        at: one.updated_at,
        reason: typeof one.reason === "string" ? one.reason : "",
      }))
      .sort((one, other) => (one.at < other.at ? 1 : -1)),
  };
}

/** The busiest first. */
function grouped(records: readonly InstanceRecord[], nameOf: (one: InstanceRecord) => string): Group[] {
  const groups = new Map<string, { starting: number; running: number; failed: number }>();
  for (const one of records) {
    const name = nameOf(one);
    const group = groups.get(name) ?? { starting: 0, running: 0, failed: 0 };
    groups.set(name, group);
    if (one.status === "Running") group.running++;
    else if (one.status === "Failed") group.failed++;
    else group.starting++;
  }
  const size = ({ running, starting, failed }: Omit<Group, "name">) => running + starting + failed;
  return [...groups].map(([name, group]) => ({ name, ...group })).sort((one, other) => size(other) - size(one));
}

function environmentOf({ environment, env }: InstanceRecord): string {
  return typeof environment === "string" ? environment : `${env?.name}@${env?.version}`;
}

function ownerOf({ owner }: InstanceRecord): string {
  return owner ?? "";
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of items) found.push(one);
  return found;
}

async function readReadiness(url: string): Promise<Pick<ServerStatus, "ready" | "store" | "disk">> {
  const response = await ask(url, "/ready", {});
  const answer = tryJson(await response.text());
  const textOf = (key: string) => (isObject(answer) && typeof answer[key] === "string" ? answer[key] : "unknown");
  return { ready: response.ok, store: textOf("store"), disk: textOf("disk") };
}

async function readText(url: string, path: string, apiKey: string): Promise<string> {
  const response = await ask(url, path, apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` });
  const text = await response.text();
  if (response.ok) return text;
  const answer = tryJson(text);
  const message =
    isObject(answer) && typeof answer.message === "string" ? answer.message : `it answered with the status ${response.status}`;
  const code = response.status === 401 ? "access.unauthenticated" : response.status === 403 ? "access.denied" : "network.failed";
  throw new PlatformError(code, `could not read ${url}${path}: ${message}`);
}

const TIMEOUT_MS = 10_000;

async function ask(url: string, path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  try {
    return await fetch(url + path, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (cause) {
    throw new PlatformError("network.failed", `could not reach ${url}${path}`, { cause });
  }
}
