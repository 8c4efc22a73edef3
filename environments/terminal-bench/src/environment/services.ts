import { setTimeout } from "node:timers/promises";
import type { OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "@aenv/kit";
import type { ComposeTask } from "../compose/of-task.ts";
import type { ComposePlan } from "../compose/plan.ts";
import type { ComposeHealthcheck, ComposeService } from "../compose/service.ts";
import { serviceImage } from "../images/images.ts";
import type { NetworkPolicy } from "../network/policy.ts";
import { TrialFailure } from "../trial/failure.ts";
import { waitUntilHealthy } from "../trial/healthcheck.ts";
import { openOptions } from "./open-options.ts";

export interface ServicesOptions {
  readonly task: ComposeTask;
  readonly plan: ComposePlan;
  readonly imagePrefix: string;
  /** Of all services: none has more of a network than the agent. */
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

async function openService({ task, plan, imagePrefix, policy, sandboxes }: ServicesOptions, service: ComposeService): Promise<TaskSandbox> {
  const { image } = await serviceImage(task, service, imagePrefix);
  const { entrypoint, command, cwd, user, environment: env, memoryMb: memory_mb, cpus, networks, volumes } = service;
  return sandboxes.open({
    name: nameOf(service.name),
    image,
    env,
    networks,
    volumes: volumes.map((volume) => ({ ...volume, name: volume.name ?? `${service.name}:${volume.path}` })),
    program: {
      ...(entrypoint !== null && { entrypoint }),
      ...(command !== null && { command }),
      ...(cwd !== null && { cwd }),
      ...(user !== null && { user }),
    },
    ...openOptions({ memory_mb, cpus }, policyOf(plan, service, policy)),
  });
}

/** A service whose networks are all internal reaches nothing else, whatever the policy is. */
export function policyOf({ isInternal }: ComposePlan, service: ComposeService, policy: NetworkPolicy): NetworkPolicy {
  return isInternal(service) ? { mode: "no-network", hosts: [] } : policy;
}

/** The networks and shared volumes of the agent's service. The sandbox of its tests has them too, without its names. */
export function sharesOf({ main, isShared }: ComposePlan, isAgent: boolean): Pick<OpenSandboxOptions, "networks" | "volumes"> {
  return {
    networks: main.networks.map(({ name, aliases }) => ({ name, aliases: isAgent ? aliases : [] })),
    volumes: main.volumes.flatMap(({ name, ...volume }) => (name !== null && isShared({ name, ...volume }) ? [{ name, ...volume }] : [])),
  };
}

/** Other volumes of the agent's service are folders of its sandbox, so that the tests get the agent's changes there as everywhere. */
export async function createFolders({ main, isShared }: ComposePlan, sandbox: TaskSandbox): Promise<void> {
  for (const volume of main.volumes) if (!isShared(volume)) await sandbox.files.mkdir(volume.path);
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
