import { type InstanceRecord, isObject, messageOf, PlatformError, readBoundedText, tryJson } from "@aenv/contract";
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
  /** Counts since the server started. */
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

interface Counts {
  starting: number;
  running: number;
  failed: number;
}

export interface Group extends Readonly<Counts> {
  readonly name: string;
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
  const [readiness, counted] = await Promise.all([readReadiness(url), count(scheduler.eachInstance())]);
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
    ...counted,
  };
}

/** More failures than anybody reads; the counts have all of them. */
const FAILURES_KEPT = 1_000;

/** Counts instances as their pages arrive: a store may list hundreds of thousands. */
async function count(records: AsyncIterable<InstanceRecord>): Promise<Pick<ServerStatus, "environments" | "owners" | "failures">> {
  const [environments, owners] = [new Map<string, Counts>(), new Map<string, Counts>()];
  const failures: Failed[] = [];
  const note = (one: InstanceRecord) => {
    const [environment, owner] = [environmentOf(one), one.owner ?? ""];
    add(environments, environment, one.status);
    add(owners, owner, one.status);
    if (one.status !== "Failed" || failures.length >= FAILURES_KEPT) return;
    failures.push({ id: one.id, environment, owner, at: one.updated_at, reason: typeof one.reason === "string" ? one.reason : "" });
  };
  for await (const one of records) note(one);
  failures.sort((one, other) => (one.at < other.at ? 1 : -1));
  return { environments: busiestFirst(environments), owners: busiestFirst(owners), failures };
}

function add(groups: Map<string, Counts>, name: string, status: string): void {
  const group = groups.get(name) ?? { starting: 0, running: 0, failed: 0 };
  groups.set(name, group);
  if (status === "Running") group.running++;
  else if (status === "Failed") group.failed++;
  else group.starting++;
}

function busiestFirst(groups: ReadonlyMap<string, Counts>): Group[] {
  const size = ({ running, starting, failed }: Counts) => running + starting + failed;
  return [...groups].map(([name, group]) => ({ name, ...group })).sort((one, other) => size(other) - size(one));
}

function environmentOf({ environment, env }: InstanceRecord): string {
  return typeof environment === "string" ? environment : `${env?.name}@${env?.version}`;
}

async function readReadiness(url: string): Promise<Pick<ServerStatus, "ready" | "store" | "disk">> {
  const { isOk, text } = await ask(url, "/ready", {});
  const answer = tryJson(text);
  const textOf = (key: string) => (isObject(answer) && typeof answer[key] === "string" ? answer[key] : "unknown");
  return { ready: isOk, store: textOf("store"), disk: textOf("disk") };
}

async function readText(url: string, path: string, apiKey: string): Promise<string> {
  const { isOk, status, text } = await ask(url, path, apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` });
  if (isOk) return text;
  const answer = tryJson(text);
  const message = isObject(answer) && typeof answer.message === "string" ? answer.message : `it answered with the status ${status}`;
  const code = status === 401 ? "access.unauthenticated" : status === 403 ? "access.denied" : "network.failed";
  throw new PlatformError(code, `could not read ${url}${path}: ${message}`);
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 16 * 1024 ** 2;

interface Answer {
  readonly isOk: boolean;
  readonly status: number;
  readonly text: string;
}

async function ask(url: string, path: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  try {
    const response = await fetch(url + path, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { isOk: response.ok, status: response.status, text: await readBoundedText(response.body, { maxBytes: MAX_BYTES }) };
  } catch (cause) {
    throw new PlatformError("network.failed", `could not read ${url}${path}: ${messageOf(cause)}`, { cause });
  }
}
