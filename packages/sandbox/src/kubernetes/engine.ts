import { type KeyObject, randomBytes } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import { openHomeId } from "../docker/record.ts";
import {
  type CommandDefaults,
  type EngineAbilities,
  noAbilities,
  type ReachedLimit,
  type Sandbox,
  type SandboxEngine,
  type SandboxRuntime,
  type SandboxSpec,
  type SandboxSubject,
} from "../engine.ts";
import { initKeyArgument, openInitKey, readInitKey } from "../init/key.ts";
import { LimitWatch } from "../limit-watch.ts";
import { describeExit, exitOf } from "../process/exit-reason.ts";
import type { ClusterAccess } from "./api/access.ts";
import { type ApiCounters, KubernetesApi } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { cancelled, startError } from "./failures.ts";
import { PodLog } from "./log.ts";
import { ensureNoEgress } from "./network.ts";
import { MAIN } from "./pod/default-templates.ts";
import { HOME_LABEL, ID_ANNOTATION, isLabelName, READY_ANNOTATION, readLabels, subjectMarks } from "./pod/names.ts";
import { countPhases, type PodPhase } from "./pod/phases.ts";
import { PROGRAM_PORT, podOf, templateCommand } from "./pod/pod.ts";
import { endOf, hasTerminated, type PodEnd } from "./pod/progress.ts";
import { type PodState, stateOf } from "./pod/state.ts";
import { DEFAULT_TEMPLATE, type PodTemplates, readTemplates } from "./pod/templates.ts";
import type { Pod } from "./pod/types.ts";
import { PodTable } from "./pods.ts";
import { KubernetesSandbox } from "./sandbox.ts";
import { KubernetesServices } from "./service/services.ts";
import { readServiceTemplates, type ServiceTemplates } from "./service/templates.ts";
import { startInPod } from "./start.ts";
import { assertValid, egressOf } from "./validate.ts";

export interface KubernetesEngineOptions {
  /** Holds the key of inits and the name of this home. */
  readonly home: string;
  readonly access: ClusterAccess;
  readonly namespace: string;
  /** The image of sandboxes without one. It has the init, Node and the runner in /opt/aenv. */
  readonly baseImage: string;
  readonly templates?: PodTemplates;
  readonly serviceTemplates?: ServiceTemplates;
  /** What follows the namespace in the names of services; default: `svc.cluster.local`. */
  readonly domainSuffix?: string;
  /** Servers with the same name look after the same pods; default: a random name of this home. */
  readonly group?: string;
  /** The private key that proves to inits who connects; default: that of the home. */
  readonly initKeyFile?: string;
  /** Restrict the outgoing connections of sandboxes by a network policy, which the cluster's network must enforce. */
  readonly networkPolicies?: boolean;
  /** The RuntimeClass of sandboxes with runsc; without it, none may ask for it. */
  readonly runscClass?: string;
  /** For sandboxes whose specification names none; runc is the default of the cluster, whatever that is. */
  readonly runtime?: SandboxRuntime;
  /** How long a pod may wait for a node, such as one that an autoscaler adds. */
  readonly unschedulableMs?: number;
  /** Called for limits that a sandbox reached while it went on. */
  readonly onLimit?: (reached: ReachedLimit) => void;
  /** Called with the time from the request to a sandbox that answers. */
  readonly onReady?: (durationMs: number) => void;
  /** Receives warnings about templates. */
  readonly log?: (line: string) => void;
  /** For tests. */
  readonly watch?: { readonly relistEveryMs?: number; readonly watchSeconds?: number };
  readonly sweepEveryMs?: number;
}

const UNSCHEDULABLE_MS = 5_000;
/** A server that has died is given this much longer than its start may take. */
const ADOPT_AFTER_MS = 60_000;
/** How often pods are looked for that servers have left. */
const SWEEP_EVERY_MS = 15_000;
const REASON_LINES = 40;
const SHUTDOWN_MS = 3_000;
const GONE_MS = 60_000;
const LIMITS_EVERY_MS = 10_000;
const STATS_TIMEOUT_MS = 4_000;

/**
 * Sandboxes that are pods of a Kubernetes cluster. Process 1 of each is our init, unless a pod runs its image's own program. They are
 * reached at the addresses of the pods, so this process is in the cluster or has a route to its pods. They outlive this process, and the
 * next engine of the same home or group adopts them. What is known about pods comes from one watch.
 */
export class KubernetesEngine implements SandboxEngine {
  readonly name = "kubernetes";
  readonly can: EngineAbilities;
  readonly initKey: KeyObject;
  readonly services: KubernetesServices;
  readonly #options: KubernetesEngineOptions;
  readonly #api: KubernetesApi;
  readonly #homeId: string;
  readonly #templates: PodTemplates;
  readonly #pods: PodTable;
  /** By the uid of their pod. */
  readonly #sandboxes = new Map<string, KubernetesSandbox>();
  readonly #starting = new Map<string, Promise<Sandbox>>();
  readonly #destroying = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #limits: LimitWatch<KubernetesSandbox>;
  readonly #sweeps: NodeJS.Timeout;
  /** The uids of pods that the last sweep found left. */
  #left: ReadonlySet<string> = new Set();
  #policy: Promise<void> | undefined;

  constructor(options: KubernetesEngineOptions) {
    this.#options = options;
    const folder = join(options.home, "kubernetes");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.initKey = options.initKeyFile === undefined ? openInitKey(realpathSync(options.home)) : readInitKey(options.initKeyFile);
    this.#homeId = options.group ?? openHomeId(folder);
    if (!isLabelName(this.#homeId))
      throw new PlatformError(
        "request.invalid",
        `the group of servers '${this.#homeId}' must be up to 63 letters, digits, '.', '_' and '-'`,
      );
    if (options.runtime === "runsc" && options.runscClass === undefined)
      throw new PlatformError(
        "request.invalid",
        "the runtime is runsc: name the cluster's RuntimeClass for it with the setting runscClass",
      );
    this.can = {
      ...noAbilities,
      images: true,
      isolates: true,
      limits: true,
      findsStrays: true,
      ports: true,
      commands: true,
      // To everywhere or to nowhere.
      egress: options.networkPolicies ?? true,
      templates: true,
      services: true,
      runtimes: options.runscClass === undefined ? [] : ["runc", "runsc"],
    };
    this.#templates = options.templates ?? readTemplates(null);
    for (const warning of this.#templates.warnings) options.log?.(warning);
    this.#api = new KubernetesApi(options.access);
    this.#pods = new PodTable(this.#api, {
      namespace: options.namespace,
      selector: `${HOME_LABEL}=${this.#homeId}`,
      onChange: (pod) => this.#observe(pod),
      onGone: (pod) => this.#observeGone(pod),
      ...options.watch,
    });
    this.services = new KubernetesServices(this.#api, {
      namespace: options.namespace,
      homeId: this.#homeId,
      templates: options.serviceTemplates ?? readServiceTemplates(null),
      domainSuffix: options.domainSuffix ?? "svc.cluster.local",
      unschedulableMs: options.unschedulableMs ?? UNSCHEDULABLE_MS,
      runtime: options.runtime,
      runscClass: options.runscClass,
      ...(this.can.egress && { ensurePolicy: () => this.#ensurePolicy() }),
    });
    this.#limits = new LimitWatch({
      periodMs: LIMITS_EVERY_MS,
      measure: (sandbox) => limitUse(sandbox),
      limitsOf: ({ state: { memoryMb } }) => ({ memoryMb, processes: null, diskMb: null }),
      report: (reached) => options.onLimit?.(reached),
    });
    this.#sweeps = setInterval(() => void this.#sweep(), options.sweepEveryMs ?? SWEEP_EVERY_MS).unref();
  }

  /** Requests to the API so far. */
  get apiCounters(): ApiCounters {
    return this.#api.counters;
  }

  /** The pods of this home or group, by phase; `Terminating` for those that are being deleted. */
  get podsByPhase(): Readonly<Record<PodPhase, number>> {
    return countPhases(this.#pods.all());
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    assertValid(spec);
    if (this.#closing.signal.aborted)
      throw new PlatformError("server.draining", `sandbox '${spec.id}' was not created: the engine is closed`);
    if (signal.aborted) throw cancelled(spec.id);
    if (this.#starting.has(spec.id)) throw exists(spec.id);
    const starting = this.#start(spec, AbortSignal.any([signal, this.#closing.signal]));
    this.#starting.set(spec.id, starting);
    try {
      return await starting;
    } catch (error) {
      if (signal.aborted || this.#closing.signal.aborted) throw cancelled(spec.id);
      throw error;
    } finally {
      this.#starting.delete(spec.id);
    }
  }

  async list(): Promise<readonly Sandbox[]> {
    // They run, but this engine no longer follows them.
    if (this.#closing.signal.aborted) return [];
    await this.#pods.listed();
    const removals: Promise<unknown>[] = [];
    for (const pod of this.#pods.all()) {
      if (this.#sandboxes.has(pod.metadata.uid ?? "")) continue;
      if (!this.#adopt(pod) && this.#isLeft(pod)) removals.push(this.#removePod(pod, { sandbox: null, hasRun: true }));
    }
    // What cannot be removed now is tried again at the next call.
    await Promise.allSettled(removals);
    return [...this.#sandboxes.values()].filter(
      ({ hasExited, isDestroying, uid, podName: name }) =>
        !hasExited && !isDestroying && isReady(this.#pods.find(name)) && this.#pods.find(name)?.metadata.uid === uid,
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#sweeps);
    await Promise.allSettled(this.#starting.values());
    // A caller may not wait for its destroy; if the server exited in between, pods would be left.
    await Promise.allSettled(this.#destroying);
    await this.#pods.close();
    this.#limits.close();
    for (const sandbox of this.#sandboxes.values()) sandbox.release();
    await this.#api.close();
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { namespace } = this.#options;
    const startedAt = performance.now();
    let pod: Pod | null = null;
    const held: { sandbox: KubernetesSandbox | null } = { sandbox: null };
    try {
      pod = await this.#createPod(spec, signal);
      const created = pod;
      signal.throwIfAborted();
      const { defaults } = await startInPod({
        spec,
        signal,
        pods: this.#pods,
        pod: created,
        template: this.#templateOf(spec),
        key: this.initKey,
        unschedulableMs: this.#options.unschedulableMs ?? UNSCHEDULABLE_MS,
        open: (ip) => {
          held.sandbox = this.#openSandbox(created, ip);
          // It may have ended before it was known here.
          const now = this.#pods.find(created.metadata.name);
          if (now !== null) this.#observe(now);
          return held.sandbox;
        },
      });
      const sandbox = await this.#finish(held.sandbox as unknown as KubernetesSandbox, defaults, signal);
      this.#options.onReady?.(performance.now() - startedAt);
      return sandbox;
    } catch (error) {
      const lines =
        pod === null || isPlatformError(error)
          ? []
          : await this.#logOf(pod)
              .tail(20)
              .catch(() => []);
      const failure = startError(spec, namespace, error, lines);
      if (pod !== null) await this.#abandon(pod, held.sandbox);
      held.sandbox?.markExited("the sandbox did not start");
      if (held.sandbox !== null) this.#forget(held.sandbox);
      throw failure;
    }
  }

  /** Removes the pod of a start that failed. If that is not possible now, it is removed as one that a server has left. */
  async #abandon(pod: Pod, sandbox: KubernetesSandbox | null): Promise<void> {
    try {
      await this.#removePod(pod, { sandbox, hasRun: sandbox !== null || stateOf(pod)?.hasInit !== true });
    } catch (error) {
      this.#options.log?.(`pod ${pod.metadata.name} of a failed start is not removed yet: ${messageOf(error)}`);
    }
  }

  /** From now on, other servers adopt it. */
  async #finish(sandbox: KubernetesSandbox, defaults: CommandDefaults, signal: AbortSignal): Promise<Sandbox> {
    sandbox.commandDefaults = defaults;
    const annotations = { [READY_ANNOTATION]: JSON.stringify(defaults) };
    this.#pods.put(await this.#api.patch<Pod>(this.#pods.path(sandbox.podName), { metadata: { annotations, uid: sandbox.uid } }, signal));
    return sandbox;
  }

  #templateOf(spec: SandboxSpec): Pod {
    return this.#templates.get(spec.template ?? DEFAULT_TEMPLATE);
  }

  /** Not cancelled half-way: the API server would create the pod anyway, after this process had looked for it. */
  async #createPod(spec: SandboxSpec, signal: AbortSignal): Promise<Pod> {
    const { baseImage, runscClass, runtime } = this.#options;
    const template = this.#templateOf(spec);
    const pod = podOf({
      homeId: this.#homeId,
      spec,
      template,
      baseImage,
      state: newState(spec, template),
      initKey: initKeyArgument(this.initKey),
      egress: this.can.egress ? egressOf(spec) : "open",
      ...((spec.runtime ?? runtime) === "runsc" && runscClass !== undefined && { runtimeClass: runscClass }),
    });
    await Promise.all([this.#pods.listed(), this.can.egress ? this.#ensurePolicy() : undefined]);
    signal.throwIfAborted();
    const made = await this.#post(pod, spec.id);
    this.#pods.put(made);
    return made;
  }

  async #post(pod: Pod, id: string): Promise<Pod> {
    try {
      return await this.#api.create<Pod>(this.#pods.path(), pod);
    } catch (error) {
      if (!isKubernetesError(error, 409) || error.reason !== "AlreadyExists") throw error;
      // Perhaps this request was sent twice, because the answer to the first was lost.
      const found = await this.#api.find<Pod>(this.#pods.path(pod.metadata.name));
      if (found !== null && stateOf(found)?.attempt === stateOf(pod)?.attempt) return found;
      throw exists(id);
    }
  }

  #ensurePolicy(): Promise<void> {
    this.#policy ??= ensureNoEgress(this.#api, this.#options.namespace).catch((error: unknown) => {
      this.#policy = undefined;
      throw error;
    });
    return this.#policy;
  }

  #openSandbox(pod: Pod, ip: string): KubernetesSandbox {
    const { name, uid = "", annotations = {} } = pod.metadata;
    const sandbox = new KubernetesSandbox({
      id: annotations[ID_ANNOTATION] ?? name,
      labels: readLabels(annotations),
      podName: name,
      uid,
      ip,
      state: stateOf(pod) as PodState,
      log: this.#logOf(pod),
      key: this.initKey,
      describe: (one, subject) => this.#describe(one, subject),
      destroy: (one) => this.#destroy(one),
    });
    this.#sandboxes.set(uid, sandbox);
    if (this.#options.onLimit !== undefined && sandbox.state.hasInit) this.#limits.add(sandbox);
    void sandbox.exited.then(() => this.#limits.delete(sandbox));
    return sandbox;
  }

  async #describe({ podName, uid }: KubernetesSandbox, subject: SandboxSubject): Promise<void> {
    this.#pods.put(await this.#api.patch<Pod>(this.#pods.path(podName), { metadata: { ...subjectMarks(subject), uid } }));
  }

  #logOf(pod: Pod): PodLog {
    const container = pod.spec.containers.some(({ name }) => name === MAIN) ? MAIN : (pod.spec.containers[0]?.name ?? MAIN);
    return new PodLog(this.#api, this.#pods.path(pod.metadata.name), container);
  }

  #forget(sandbox: KubernetesSandbox): void {
    if (this.#sandboxes.get(sandbox.uid) === sandbox) this.#sandboxes.delete(sandbox.uid);
  }

  /** Takes over a pod of an earlier or another server; false if it is not one that runs. */
  #adopt(pod: Pod): boolean {
    const { podIP } = pod.status ?? {};
    if (!isReady(pod) || endOf(pod) !== null || stateOf(pod) === null || podIP === undefined) return false;
    if (this.#starting.has(pod.metadata.annotations?.[ID_ANNOTATION] ?? "")) return true;
    const sandbox = this.#openSandbox(pod, podIP);
    sandbox.commandDefaults = readDefaultsOf(pod);
    return true;
  }

  /** Whether no server will need it: its start is over, or it has ended. */
  #isLeft(pod: Pod): boolean {
    const state = stateOf(pod);
    if (state === null || this.#starting.has(pod.metadata.annotations?.[ID_ANNOTATION] ?? "")) return false;
    return Date.now() > state.startsUntil + ADOPT_AFTER_MS && (!isReady(pod) || endOf(pod) !== null);
  }

  /**
   * Removes pods that servers have left, also while nobody lists sandboxes: a pod that a killed server was starting becomes one only when
   * its time is over. One that has just ended is first left to its own server, which reads its log.
   */
  async #sweep(): Promise<void> {
    const uidOf = ({ metadata }: Pod) => metadata.uid ?? "";
    const left = this.#pods.all().filter((pod) => !this.#sandboxes.has(uidOf(pod)) && this.#isLeft(pod));
    const again = left.filter((pod) => this.#left.has(uidOf(pod)));
    // Those that are being removed are not removed twice.
    this.#left = new Set(left.filter((pod) => !again.includes(pod)).map(uidOf));
    await Promise.allSettled(again.map((pod) => this.#removePod(pod, { sandbox: null, hasRun: true })));
  }

  /** Notices the end of a sandbox. */
  #observe(pod: Pod): void {
    const sandbox = this.#sandboxes.get(pod.metadata.uid ?? "");
    if (sandbox === undefined || sandbox.hasExited || sandbox.isDestroying) return;
    const end = endOf(pod);
    if (end !== null) void describeEnd(end, sandbox).then((reason) => sandbox.isDestroying || sandbox.markExited(reason));
  }

  #observeGone(pod: Pod): void {
    const sandbox = this.#sandboxes.get(pod.metadata.uid ?? "");
    if (sandbox !== undefined && !sandbox.isDestroying) sandbox.markExited("the pod was deleted by another client of the cluster");
  }

  #destroy(sandbox: KubernetesSandbox): Promise<void> {
    const destroying = this.#end(sandbox).finally(() => this.#destroying.delete(destroying));
    this.#destroying.add(destroying);
    return destroying;
  }

  async #end(sandbox: KubernetesSandbox): Promise<void> {
    const pod = this.#pods.find(sandbox.podName);
    try {
      if (pod !== null && pod.metadata.uid === sandbox.uid) await this.#removePod(pod, { sandbox, hasRun: true });
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, { cause });
    }
    sandbox.markExited("the sandbox was destroyed");
    this.#forget(sandbox);
  }

  /**
   * The init ends everything in the pod first. Then nothing runs in it, and the API server may forget it at once, while the node still
   * cleans up. The same if no program was given to the init yet. Otherwise the node is given time, and the pod is gone when the node has
   * confirmed it.
   */
  async #removePod(pod: Pod, { sandbox, hasRun }: { readonly sandbox: KubernetesSandbox | null; readonly hasRun: boolean }): Promise<void> {
    const { name, uid = "" } = pod.metadata;
    const hasEnded = !hasRun || hasTerminated(this.#pods.find(name) ?? pod) || (sandbox !== null && (await endByInit(sandbox)));
    const isSingle = pod.spec.containers.length === 1;
    const graceSeconds = hasEnded && isSingle ? 0 : 1;
    const isThere = await this.#api.delete(this.#pods.path(name), { uid, graceSeconds });
    if (!isThere || graceSeconds === 0) return this.#pods.remove(pod);
    const deadline = AbortSignal.timeout(GONE_MS);
    try {
      await this.#pods.until(name, (now) => (now === null || now.metadata.uid !== uid ? true : undefined), deadline);
    } catch (error) {
      if (!deadline.aborted) throw error;
      throw new Error(`its node has not confirmed the end of pod ${name} within ${GONE_MS / 1_000} s`);
    }
  }
}

async function limitUse(sandbox: KubernetesSandbox) {
  if (sandbox.hasExited) return null;
  const stats = await (await sandbox.init()).stats(AbortSignal.timeout(STATS_TIMEOUT_MS));
  const { oomKills: outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit } = stats;
  return { outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit };
}

/** Whether the init has confirmed that nothing runs any more: it ends last. */
async function endByInit(sandbox: KubernetesSandbox): Promise<boolean> {
  if (!sandbox.state.hasInit) return false;
  const late = new Promise<false>((resolve) => {
    setTimeout(() => resolve(false), SHUTDOWN_MS).unref();
  });
  const ending = async () => {
    const init = await sandbox.init();
    await init.shutdown({ graceMs: 0 });
    await init.closed;
    return true;
  };
  return Promise.race([ending().catch(() => false), late]);
}

async function describeEnd(end: PodEnd, sandbox: KubernetesSandbox): Promise<string> {
  const { memoryMb } = sandbox.state;
  switch (end.kind) {
    case "cluster":
      return end.reason;
    case "out-of-memory":
      return `the program ran out of memory${memoryMb === null ? "" : ` (its limit is ${memoryMb} MB)`}`;
    case "exit":
      return describeExit({ exit: exitOf(end.code), lines: await sandbox.tail(REASON_LINES).catch(() => []), memoryMb });
  }
}

function newState(spec: SandboxSpec, template: Pod): PodState {
  const listening = spec.listening ?? { kind: "appended" };
  return {
    format: 1,
    port: listening.kind === "none" ? null : listening.kind === "port" ? listening.port : PROGRAM_PORT,
    // Only the node knows the program of an image. It is the init's task if the sandbox names one, or needs none.
    hasInit: spec.command.length > 0 || listening.kind === "none" || templateCommand(template).length > 0,
    memoryMb: spec.memoryMb ?? null,
    attempt: randomBytes(9).toString("base64url"),
    startsUntil: Date.now() + spec.startTimeoutMs,
  };
}

function isReady(pod: Pod | null): boolean {
  return pod?.metadata.annotations?.[READY_ANNOTATION] !== undefined;
}

function readDefaultsOf(pod: Pod): CommandDefaults {
  try {
    return JSON.parse(pod.metadata.annotations?.[READY_ANNOTATION] ?? "") as CommandDefaults;
  } catch {
    return { cwd: "/", env: {} };
  }
}

function exists(id: string): PlatformError {
  return new PlatformError("sandbox.exists", `a sandbox '${id}' exists already; destroy it first, or choose another id`);
}
