import { posix } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { serviceImage } from "../compose/images.ts";
import type { ComposeTask } from "../compose/of-task.ts";
import type { ComposePlan } from "../compose/plan.ts";
import type { ComposeHealthcheck, ComposeService } from "../compose/service.ts";
import { TrialFailure } from "../trial/failure.ts";
import { waitUntilHealthy } from "../trial/healthcheck.ts";
import type { NetworkPolicy } from "../trial/plan/network.ts";
import { copyMount, isFileOfTask } from "./mounts.ts";
import { openOptions } from "./open-options.ts";

export interface ServicesOptions {
  readonly task: ComposeTask;
  readonly plan: ComposePlan;
  readonly imagePrefix: string;
  /** Network policy of all services: none has more of a network than the agent. */
  readonly policy: NetworkPolicy;
  readonly sandboxes: TaskSandboxes;
  readonly openMain: () => Promise<TaskSandbox>;
}

/** The sandbox of a service that is not the agent's. */
export function findService(sandboxes: TaskSandboxes, name: string): TaskSandbox | null {
  return sandboxes.find(nameOf(name));
}

/** Starts all services as compose does, each after those that it depends on, and waits until they are healthy. Answers the agent's. */
export async function startServices(options: ServicesOptions): Promise<TaskSandbox> {
  const copying = await copyMounts(options);
  try {
    return await startInOrder(options);
  } finally {
    // Until then, the volumes exist because of them.
    for (const sandbox of copying) await sandbox.close();
  }
}

/** Fills the volumes of services that are files and folders of the task, in sandboxes that do nothing else. */
async function copyMounts({ task, plan, imagePrefix, sandboxes }: ServicesOptions): Promise<readonly TaskSandbox[]> {
  const opened: TaskSandbox[] = [];
  const filled = new Set<string>();
  for (const service of plan.order) {
    const mounts = service === plan.main ? [] : service.volumes.filter(({ source }) => source !== null && !filled.has(source));
    if (mounts.length === 0) continue;
    const { image } = await serviceImage(task, service, imagePrefix);
    const volumes = (await openVolumes(task, { ...service, volumes: mounts })).map((volume) => ({ ...volume, isReadOnly: false }));
    const sandbox = await sandboxes.open({ name: `mounts-${service.name}`, image, volumes, egress: "none" });
    opened.push(sandbox);
    for (const volume of mounts) {
      await copyMount(task, sandbox.files, volume);
      if (!(await isFileOfTask(task, volume))) filled.add(volume.source ?? "");
    }
  }
  return opened;
}

async function startInOrder(options: ServicesOptions): Promise<TaskSandbox> {
  const { plan, sandboxes, openMain } = options;
  const healthy = new Map<string, Promise<void>>();
  let main: TaskSandbox | null = null;
  for (const service of plan.order) {
    for (const [name, condition] of service.dependsOn) if (condition === "healthy") await healthy.get(name);
    const sandbox = service === plan.main ? await openMain() : await openService(options, service);
    if (service === plan.main) main = sandbox;
    const waiting = service.healthcheck === null ? Promise.resolve() : untilHealthy(sandbox, service.name, service.healthcheck);
    // Its failure is reported when it is awaited.
    waiting.catch(() => {});
    healthy.set(service.name, waiting);
  }
  await Promise.all(healthy.values());
  // One whose program has ended by now is an error that says why.
  for (const { name } of plan.order) if (name !== plan.main.name) await sandboxes.get(nameOf(name)).files.stat("/");
  if (main === null) throw new Error("the compose file has no service of the agent");
  return main;
}

async function openService(options: ServicesOptions, service: ComposeService): Promise<TaskSandbox> {
  const { task, plan, imagePrefix, policy, sandboxes } = options;
  const { image } = await serviceImage(task, service, imagePrefix);
  const { entrypoint, command, cwd, user, environment: env, memoryMb: memory_mb, cpus, networks } = service;
  const limits = openOptions({ memory_mb, cpus }, policyOf(plan, service, policy));
  return sandboxes.open({
    name: nameOf(service.name),
    image,
    env,
    networks,
    volumes: await openVolumes(task, service),
    ...ownOptions(service, limits.memoryMb),
    program: {
      ...(entrypoint !== null && { entrypoint }),
      ...(command !== null && { command }),
      ...(cwd !== null && { cwd }),
      ...(user !== null && { user }),
    },
    ...limits,
  });
}

type OpenVolume = NonNullable<OpenSandboxOptions["volumes"]>[number];

/** A file of the task is in a volume for the folder above it, beside what the image has there. */
async function openVolumes(task: ComposeTask, { name: service, volumes }: ComposeService): Promise<readonly OpenVolume[]> {
  const found = new Map<string, OpenVolume>();
  for (const volume of volumes) {
    const isFile = await isFileOfTask(task, volume);
    const path = isFile ? posix.dirname(volume.path) : volume.path;
    const name = isFile || volume.name === null ? `${service}:${path}` : volume.name;
    found.set(path, { name, path, isReadOnly: volume.isReadOnly && !isFile });
  }
  return [...found.values()];
}

/** What the sandbox of a service has of its own: limits, folders in memory, and hosts. */
export function ownOptions(
  { processes, tmpfs, hosts }: ComposeService,
  memoryMb: number,
  names: readonly string[] = [],
): Pick<OpenSandboxOptions, "processes" | "tmpfs" | "hosts"> {
  const lines = [...names.map((name) => ({ name, address: "127.0.0.1" })), ...hosts];
  return {
    ...(processes !== null && { processes }),
    // Half of the memory, as Linux gives by itself.
    ...(tmpfs.length > 0 && { tmpfs: tmpfs.map((folder) => ({ ...folder, sizeMb: folder.sizeMb ?? Math.ceil(memoryMb / 2) })) }),
    ...(lines.length > 0 && { hosts: lines }),
  };
}

/** A service whose networks are all internal reaches nothing else, whatever the policy is. */
export function policyOf({ isInternal }: ComposePlan, service: ComposeService, policy: NetworkPolicy): NetworkPolicy {
  return isInternal(service) ? { mode: "no-network", hosts: [] } : policy;
}

/** The networks and shared volumes of the agent's service. The sandbox of its tests has them too, without its names. */
export async function sharesOf(
  task: ComposeTask,
  { main, isShared }: ComposePlan,
  isAgent: boolean,
): Promise<Pick<OpenSandboxOptions, "networks" | "volumes">> {
  const volumes = [];
  for (const volume of main.volumes) if (isShared(volume) && !(await isFileOfTask(task, volume))) volumes.push(volume);
  return {
    networks: main.networks.map(({ name, aliases }) => ({ name, aliases: isAgent ? aliases : [] })),
    volumes: await openVolumes(task, { ...main, volumes }),
  };
}

/** Other volumes of the agent's service are folders of its sandbox, so that the tests get the agent's changes there as everywhere. */
export async function createFolders(task: ComposeTask, { main, isShared }: ComposePlan, sandbox: TaskSandbox): Promise<void> {
  for (const volume of main.volumes)
    if (!isShared(volume) || (await isFileOfTask(task, volume))) await copyMount(task, sandbox.files, volume);
}

/** Folders that the agent's sandbox has as copies and that it may not change: the tests get them as they are in the task. */
export function keptFolders({ main, isShared }: ComposePlan): readonly string[] {
  return main.volumes.filter((volume) => volume.isReadOnly && !isShared(volume)).map(({ path }) => path);
}

/** The first attempt is at once; one of Docker would be after an interval. So failures in the first interval do not count. */
async function untilHealthy(sandbox: TaskSandbox, name: string, check: ComposeHealthcheck): Promise<void> {
  const { test, intervalSec, timeoutSec, startPeriodSec, startIntervalSec, retries } = check;
  const config = {
    command: test.join(" "),
    interval_sec: intervalSec,
    timeout_sec: timeoutSec,
    start_period_sec: Math.max(startPeriodSec, intervalSec),
    start_interval_sec: Math.min(startIntervalSec, intervalSec),
    retries,
  };
  const attempt = async (_: string, timeoutMs: number | undefined) =>
    (await sandbox.exec([...test], timeoutMs === undefined ? {} : { timeoutMs })).exitCode === 0;
  try {
    await waitUntilHealthy(config, { attempt, now: Date.now, sleep: (ms) => setTimeout(ms) });
  } catch (error) {
    if (error instanceof TrialFailure) throw new TrialFailure(error.type, `the service '${name}' is not healthy: ${error.message}`);
    throw error;
  }
}

/** The names `task` and `verifier` are taken. */
function nameOf(service: string): string {
  return `service-${service}`;
}
