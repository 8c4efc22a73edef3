import type { KeyObject } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type {
  EngineAbilities,
  EngineEgress,
  EngineTemplates,
  Sandbox,
  SandboxEngine,
  SandboxSpec,
  SandboxSubject,
} from "../engine/engine.ts";
import { openHomeId } from "../host/home-id.ts";
import { once } from "../host/once.ts";
import { initKeyArgument, openInitKey, readInitKey } from "../init/key.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import type { LimitWatch } from "../lifecycle/limit-watch.ts";
import { existsAlready } from "../lifecycle/start-errors.ts";
import { type ApiCounters, KubernetesApi } from "./api/client.ts";
import { PodCreation } from "./creation.ts";
import { claimedNote, createdNote, endedNote, secondEndedNote, startFailedNote, usedNote, waitingNote } from "./events/event.ts";
import { PodEvents } from "./events/events.ts";
import { describeEnd } from "./exit-reason.ts";
import { startError } from "./failures.ts";
import { watchLimits } from "./limits.ts";
import { PodLog } from "./log.ts";
import { ensureNoEgress } from "./network.ts";
import { NodeImages } from "./node-images.ts";
import { abilitiesOf, assertOptions, type KubernetesEngineOptions, UNSCHEDULABLE_MS } from "./options.ts";
import { mainOf } from "./pod/container.ts";
import { HOME_LABEL, hasMarks, ID_ANNOTATION, readLabels, subjectMarks } from "./pod/names.ts";
import { countPhases, type PodPhase } from "./pod/phases.ts";
import { podOf } from "./pod/pod.ts";
import { endOf, secondEndOf } from "./pod/progress.ts";
import { type PodState, stateOf } from "./pod/state.ts";
import { readTemplates } from "./pod/templates.ts";
import type { Pod } from "./pod/types.ts";
import { PodTable } from "./pods.ts";
import { isWaiting, kindOf, type PodKind, withKind } from "./pool/kind.ts";
import { PodPool } from "./pool/pool.ts";
import { createWithRoom } from "./pool/room.ts";
import { isReady, type ReadyDefaults, readReadyDefaults, readyAnnotation } from "./ready.ts";
import { removePod } from "./removal.ts";
import { KubernetesSandbox } from "./sandbox.ts";
import { secondSandbox } from "./second.ts";
import { KubernetesServices } from "./service/services.ts";
import { readServiceTemplates } from "./service/templates.ts";
import { startInPod } from "./start.ts";
import { Sweeps } from "./sweeps.ts";
import { assertPod } from "./validate.ts";

/** A server that has died is given this much longer than its start may take. */
const ADOPT_AFTER_MS = 60_000;

/**
 * Sandboxes that are pods of a Kubernetes cluster. Process 1 of each is our init, unless a pod runs its image's own program. They are
 * reached at the addresses of the pods, so this process is in the cluster or has a route to its pods. They outlive this process, and the
 * next engine of the same home or group adopts them. What is known about pods comes from one watch.
 */
export class KubernetesEngine implements SandboxEngine {
  readonly name = "kubernetes";
  readonly can: EngineAbilities;
  readonly location?: string;
  readonly commands: { readonly key: KeyObject };
  readonly egress?: EngineEgress;
  readonly templates: EngineTemplates = { owners: (name) => this.#creation.ownersOf(name) };
  readonly services: KubernetesServices;
  readonly #options: KubernetesEngineOptions;
  readonly #api: KubernetesApi;
  readonly #pods: PodTable;
  readonly #creation: PodCreation;
  readonly #images: NodeImages;
  /** Sandboxes by the uid of their pod, those of other servers included. */
  readonly #sandboxes = new Map<string, KubernetesSandbox>();
  /** Those that were started or taken over here. Their ends and limits are reported here, those of the others by their servers. */
  readonly #own = new WeakSet<KubernetesSandbox>();
  readonly #work = new EngineWork();
  readonly #limits: LimitWatch<KubernetesSandbox>;
  readonly #pool: PodPool | null;
  readonly #sweeps: Sweeps;
  readonly #events: PodEvents;
  readonly #claims = { claimed: 0, created: 0 };
  readonly #ensurePolicy = once(() => ensureNoEgress(this.#api, this.#options.namespace));

  constructor(options: KubernetesEngineOptions) {
    this.#options = options;
    const folder = join(options.home, "kubernetes");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const key = options.initKeyFile === undefined ? openInitKey(realpathSync(options.home)) : readInitKey(options.initKeyFile);
    this.commands = { key };
    const homeId = options.group ?? openHomeId(folder);
    assertOptions(options, homeId);
    this.can = abilitiesOf(options);
    // Network policies allow connections to everywhere or to nowhere.
    if (options.networkPolicies ?? true) this.egress = { reportsRefused: false, changes: false };
    if (options.group !== undefined) this.location = `kubernetes:${options.namespace}/${options.group}`;
    const { templates = readTemplates(null), serviceTemplates = readServiceTemplates(null) } = options;
    for (const warning of [...templates.warnings, ...serviceTemplates.warnings]) options.log?.(warning);
    this.#api = new KubernetesApi(options.access);
    this.#pods = new PodTable(this.#api, {
      namespace: options.namespace,
      selector: `${HOME_LABEL}=${homeId}`,
      onChange: (pod) => this.#observe(pod),
      onGone: (pod) => this.#observeGone(pod),
      ...options.watch,
    });
    this.#events = new PodEvents(this.#api, options);
    const { unschedulableMs = UNSCHEDULABLE_MS } = options;
    this.#pool = this.#openPool(options);
    const initKey = initKeyArgument(key);
    this.#creation = new PodCreation(this.#api, this.#pods, {
      ...options,
      homeId,
      initKey,
      templates,
      hasEgress: this.egress !== undefined,
    });
    this.#images = new NodeImages(options);
    this.services = new KubernetesServices(this.#api, {
      namespace: options.namespace,
      homeId,
      templates: serviceTemplates,
      domainSuffix: options.domainSuffix ?? "svc.cluster.local",
      unschedulableMs,
      baseImage: options.baseImage,
      images: this.#images,
      initKey: key,
      runtime: options.runtime,
      runscClass: options.runscClass,
      ...(this.egress !== undefined && { ensurePolicy: () => this.#ensurePolicy() }),
    });
    this.#limits = watchLimits((reached) => options.onLimit?.(reached));
    this.#sweeps = new Sweeps({
      everyMs: options.sweepEveryMs,
      findLeft: () => this.#pods.all().filter((pod) => this.#isLeft(pod)),
      remove: (pod) => this.#remove(pod, null, true),
    });
  }

  /** Requests to the API so far. */
  get apiCounters(): ApiCounters {
    return this.#api.counters;
  }

  /** The pods of this home or group, by phase; `Terminating` for those that are being deleted. */
  get podsByPhase(): Readonly<Record<PodPhase, number>> {
    return countPhases(this.#pods.all());
  }

  /** The pods that wait for a sandbox. */
  get waitingPods(): number {
    return this.#pods.all().filter((pod) => isWaiting(pod) && pod.metadata.deletionTimestamp === undefined).length;
  }

  /** Sandboxes that could have used a waiting pod: those that claimed one, and those for which one was created because none waited. */
  get podClaims(): Readonly<Record<"claimed" | "created", number>> {
    return { ...this.#claims };
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    assertPod(spec);
    try {
      return await this.#work.start(spec.id, signal, (either) => this.#start(spec, either));
    } finally {
      // Not awaited, and not before: a pod that starts would slow down this one.
      void this.#pool?.fill();
    }
  }

  async list(): Promise<readonly Sandbox[]> {
    // They run, but this engine no longer follows them.
    if (this.#work.isClosed) return [];
    await this.#pods.listed();
    const removals: Promise<unknown>[] = [];
    for (const pod of this.#pods.all()) {
      const isKnown = this.#sandboxes.has(pod.metadata.uid ?? "") || this.#adopt(pod);
      if (!isKnown && this.#isLeft(pod)) removals.push(this.#remove(pod, null, true));
    }
    // What cannot be removed now is tried again at the next call.
    await Promise.allSettled(removals);
    return [...this.#sandboxes.values()].filter(
      ({ hasExited, isDestroying, uid, podName: name }) =>
        !hasExited && !isDestroying && isReady(this.#pods.find(name)) && this.#pods.find(name)?.metadata.uid === uid,
    );
  }

  async close(): Promise<void> {
    this.#sweeps.close();
    await this.services.close();
    await this.#work.close();
    await this.#pool?.close();
    await this.#events.close();
    await this.#pods.close();
    this.#limits.close();
    for (const sandbox of this.#sandboxes.values()) sandbox.release();
    await this.#api.close();
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const startedAt = performance.now();
    let pod: Pod | null = null;
    const held: { sandbox: KubernetesSandbox | null } = { sandbox: null };
    try {
      pod = await this.#podFor(spec, signal);
      const created = pod;
      signal.throwIfAborted();
      await startInPod({
        spec,
        signal,
        pods: this.#pods,
        pod: created,
        template: this.#creation.templateOf(spec),
        key: this.commands.key,
        unschedulableMs: this.#options.unschedulableMs ?? UNSCHEDULABLE_MS,
        makeRoom: () => this.#makeRoom(spec),
        open: (ip) => {
          held.sandbox = this.#openSandbox(created, ip);
          held.sandbox.shared.takeOver();
          // It may have ended before it was known here.
          const now = this.#pods.find(created.metadata.name);
          if (now !== null) this.#observe(now);
          return held.sandbox;
        },
        note: (sandbox, defaults, stop) => this.#noteReady(sandbox, defaults, stop),
      });
      this.#options.onReady?.(performance.now() - startedAt);
      return held.sandbox as KubernetesSandbox;
    } catch (error) {
      const lines =
        pod === null || isPlatformError(error)
          ? []
          : await this.#logOf(pod)
              .tail(20)
              .catch(() => []);
      const failure = startError(spec, this.#options.namespace, error, lines);
      if (pod !== null && failure.code !== "request.cancelled") this.#events.note(pod, startFailedNote(failure.message));
      // First, so that its end is not reported as that of a sandbox.
      if (held.sandbox !== null) this.#forget(held.sandbox);
      if (pod !== null) await this.#abandon(pod, held.sandbox);
      held.sandbox?.markExited("the sandbox did not start");
      throw failure;
    }
  }

  async #podFor(spec: SandboxSpec, signal: AbortSignal): Promise<Pod> {
    const input = this.#creation.inputOf(spec);
    const images = [spec.image, spec.second?.image];
    await Promise.all([
      this.#images.assertAllowed(images),
      this.#pods.listed(),
      this.egress !== undefined ? this.#ensurePolicy() : undefined,
    ]);
    signal.throwIfAborted();
    const pod = podOf(input);
    const kind = this.#pool === null ? null : kindOf(input);
    const claimed = kind === null ? null : await this.#claim(kind, pod, spec, signal);
    if (kind !== null) this.#claims[claimed === null ? "created" : "claimed"]++;
    const makeRoom = () => this.#makeRoom(spec);
    const create = () => this.#creation.create(withKind(pod, kind), input);
    const found = claimed ?? (await createWithRoom(create, { makeRoom, signal }));
    this.#events.note(found, claimed === null ? createdNote(spec) : claimedNote(spec));
    return found;
  }

  /** A pod that waits; its name does not show which sandbox it is for. */
  async #claim(kind: PodKind, pod: Pod, { id }: SandboxSpec, signal: AbortSignal): Promise<Pod | null> {
    if (this.#pods.all().some(({ metadata }) => metadata.annotations?.[ID_ANNOTATION] === id)) throw existsAlready(id);
    return (await this.#pool?.claim(kind, pod, signal)) ?? null;
  }

  #openPool({ pool, group, namespace, unschedulableMs = UNSCHEDULABLE_MS, log }: KubernetesEngineOptions): PodPool | null {
    if (pool === undefined) return null;
    const onCreated = (pod: Pod) => this.#events.note(pod, waitingNote);
    return new PodPool(this.#api, this.#pods, {
      namespace,
      limits: pool,
      unschedulableMs,
      isShared: group !== undefined,
      roundMs: pool.roundMs,
      log,
      onCreated,
    });
  }

  async #makeRoom({ isAhead = false }: SandboxSpec): Promise<boolean> {
    return !isAhead && this.#pool !== null && this.#pool.makeRoom();
  }

  /** Removes the pod of a start that failed. If that is not possible now, it is removed as one that a server has left. */
  async #abandon(pod: Pod, sandbox: KubernetesSandbox | null): Promise<void> {
    try {
      await this.#remove(pod, sandbox, sandbox !== null || stateOf(pod)?.hasInit !== true);
    } catch (error) {
      this.#options.log?.(`pod ${pod.metadata.name} of a failed start is not removed yet: ${messageOf(error)}`);
    }
  }

  /** From now on, other servers adopt it. */
  async #noteReady(sandbox: KubernetesSandbox, defaults: ReadyDefaults, signal: AbortSignal): Promise<void> {
    sandbox.useDefaults(defaults);
    const metadata = { annotations: readyAnnotation(defaults), uid: sandbox.uid };
    this.#pods.put(await this.#api.patch<Pod>(this.#pods.path(sandbox.podName), { metadata }, signal));
  }

  #openSandbox(pod: Pod, ip: string): KubernetesSandbox {
    const { name, uid = "", annotations = {} } = pod.metadata;
    const parts = {
      id: annotations[ID_ANNOTATION] ?? name,
      labels: readLabels(annotations),
      podName: name,
      uid,
      ip,
      state: stateOf(pod) as PodState,
      log: this.#logOf(pod),
      key: this.commands.key,
      takeOver: (one: KubernetesSandbox) => this.#takeOver(one),
      describe: (one: KubernetesSandbox, subject: SandboxSubject) => this.#describe(one, subject),
      destroy: (one: KubernetesSandbox) => this.#work.end(this.#end(one)),
    };
    const second = secondSandbox(parts, (container) => this.#logOf(pod, container));
    const sandbox = new KubernetesSandbox({ ...parts, ...(second !== null && { second }) });
    this.#sandboxes.set(uid, sandbox);
    return sandbox;
  }

  #takeOver(sandbox: KubernetesSandbox): void {
    if (this.#own.has(sandbox)) return;
    this.#own.add(sandbox);
    if (this.#options.onLimit === undefined || !sandbox.state.hasInit || sandbox.hasExited) return;
    this.#limits.add(sandbox);
    void sandbox.exited.then(() => this.#limits.delete(sandbox));
  }

  async #describe({ podName, uid }: KubernetesSandbox, subject: SandboxSubject): Promise<void> {
    const marks = subjectMarks(subject);
    // It was created or claimed for this.
    if (hasMarks(this.#pods.find(podName), marks)) return;
    const pod = await this.#api.patch<Pod>(this.#pods.path(podName), { metadata: { ...marks, uid } });
    this.#pods.put(pod);
    this.#events.note(pod, usedNote(subject));
  }

  #logOf(pod: Pod, container: string = mainOf(pod).name): PodLog {
    return new PodLog(this.#api, this.#pods.path(pod.metadata.name), container);
  }

  #forget(sandbox: KubernetesSandbox): void {
    if (this.#sandboxes.get(sandbox.uid) === sandbox) this.#sandboxes.delete(sandbox.uid);
  }

  /** Makes a pod of an earlier or another server reachable; false if it is not one that runs. */
  #adopt(pod: Pod): boolean {
    const { podIP } = pod.status ?? {};
    if (!isReady(pod) || endOf(pod) !== null || stateOf(pod) === null || podIP === undefined) return false;
    if (this.#isStarting(pod)) return true;
    const sandbox = this.#openSandbox(pod, podIP);
    sandbox.useDefaults(readReadyDefaults(pod));
    return true;
  }

  /** Whether no server will need it: its start is over, or it has ended. Those of this server are removed by whoever holds them. */
  #isLeft(pod: Pod): boolean {
    const state = stateOf(pod);
    const sandbox = this.#sandboxes.get(pod.metadata.uid ?? "");
    if (state === null || isWaiting(pod) || this.#isStarting(pod) || (sandbox !== undefined && this.#own.has(sandbox))) return false;
    return Date.now() > state.startsUntil + ADOPT_AFTER_MS && (!isReady(pod) || endOf(pod) !== null);
  }

  #isStarting({ metadata: { annotations = {} } }: Pod): boolean {
    return this.#work.isStarting(annotations[ID_ANNOTATION] ?? "");
  }

  /** Notices the end of a sandbox. */
  #observe(pod: Pod): void {
    this.#pool?.observe(pod);
    const sandbox = this.#sandboxes.get(pod.metadata.uid ?? "");
    if (sandbox === undefined || !sandbox.isOpen) return;
    const end = endOf(pod);
    const secondEnd = secondEndOf(pod);
    if (secondEnd !== null && sandbox.second?.isOpen === true) {
      sandbox.second.markExited(secondEnd);
      if (this.#own.has(sandbox)) this.#events.note(pod, secondEndedNote(secondEnd));
    }
    if (end !== null) void describeEnd(end, sandbox).then((reason) => this.#markEnded(sandbox, pod, reason));
  }

  #observeGone(pod: Pod): void {
    this.#pool?.forget(pod);
    const sandbox = this.#sandboxes.get(pod.metadata.uid ?? "");
    if (sandbox === undefined) return;
    this.#markEnded(sandbox, pod, "the pod was deleted by another client of the cluster");
    this.#forget(sandbox);
  }

  /** It has ended by itself, or the cluster has ended it. */
  #markEnded(sandbox: KubernetesSandbox, pod: Pod, reason: string): void {
    if (!sandbox.isOpen) return;
    sandbox.markExited(reason);
    if (this.#own.has(sandbox)) this.#events.note(pod, endedNote(reason));
  }

  async #end(sandbox: KubernetesSandbox): Promise<void> {
    const pod = this.#pods.find(sandbox.podName);
    try {
      if (pod !== null && pod.metadata.uid === sandbox.uid) await this.#remove(pod, sandbox, true);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, { cause });
    }
    sandbox.markExited("the sandbox was destroyed");
    this.#forget(sandbox);
  }

  #remove(pod: Pod, sandbox: KubernetesSandbox | null, hasRun: boolean): Promise<void> {
    return removePod({ api: this.#api, pods: this.#pods, pod, sandbox, hasRun });
  }
}
