import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseDuration } from "@aenv/contract";
import { clusterAccess, connectInit, KubernetesEngine, type PodTemplates, type Sandbox } from "@aenv/sandbox";
import type { ServerConfig } from "@aenv/server";

/** What happened when pods were started. */
export interface Trial {
  /** From the request until commands run in the pod. */
  readonly startMs: number;
  /** What the pod that may connect to nowhere did; null if network policies are off. */
  readonly egress: "blocked" | "open" | "unknown" | null;
}

const START_MS = 90_000;
const ENDS_AFTER_SECONDS = 300;
/** The network of some clusters applies policies a while after a pod has started. */
const POLICY_MS = 10_000;

/** Connects to the API server at the address that Kubernetes gives to every pod. */
const CONNECT = `
const variables = Object.fromEntries(require("fs").readFileSync("/proc/1/environ", "utf8").split("\\0").map((one) => one.split("=")));
const socket = require("net").connect({ host: variables.KUBERNETES_SERVICE_HOST, port: variables.KUBERNETES_SERVICE_PORT, timeout: 2000 });
const end = (word) => { console.log(word); process.exit(0); };
socket.on("connect", () => end("connected")).on("timeout", () => end("refused")).on("error", () => end("refused"));
`;

/** Starts pods as the server does, runs a command in them, and removes them. Throws the reason if they do not start. */
export async function tryPods(config: ServerConfig, baseImage: string, templates: PodTemplates): Promise<Trial> {
  const home = await mkdtemp(join(tmpdir(), "aenv-doctor-"));
  try {
    return await tryPodsIn(home, config, baseImage, templates);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function tryPodsIn(home: string, config: ServerConfig, baseImage: string, templates: PodTemplates): Promise<Trial> {
  const engine = openTrialEngine(config, baseImage, templates, home);
  const create = (egress: "none" | "open") =>
    engine.create(
      { id: `doctor-${egress}`, command: [], variables: {}, labels: {}, startTimeoutMs: START_MS, listening: { kind: "none" }, egress },
      AbortSignal.timeout(START_MS),
    );
  const created: Promise<Sandbox>[] = [];
  try {
    const start = performance.now();
    created.push(create("none"));
    const closed = await (created[0] as Promise<Sandbox>);
    const startMs = performance.now() - start;
    if (!config.kubeNetworkPolicies) return { startMs, egress: null };
    if (await connectsFor(engine, closed, POLICY_MS)) return { startMs, egress: "open" };
    // Only a second pod shows that the address can be reached at all.
    created.push(create("open"));
    return { startMs, egress: (await connects(engine, await (created[1] as Promise<Sandbox>))) ? "blocked" : "unknown" };
  } finally {
    for (const one of await Promise.allSettled(created)) if (one.status === "fulfilled") await one.value.destroy();
    await engine.close();
  }
}

function openTrialEngine(config: ServerConfig, baseImage: string, templates: PodTemplates, home: string): KubernetesEngine {
  return new KubernetesEngine({
    home,
    access: clusterAccess(config),
    namespace: config.kubeNamespace,
    baseImage,
    templates: { ...templates, get: (name) => withDeadline(templates.get(name)) },
    group: `doctor-${randomBytes(6).toString("hex")}`,
    networkPolicies: config.kubeNetworkPolicies,
    runtime: config.runtime,
    unschedulableMs: parseDuration(config.nodeWait),
    ...(config.runscClass !== null && { runscClass: config.runscClass }),
  });
}

/** A pod of a doctor that was killed ends by itself. */
function withDeadline(pod: ReturnType<PodTemplates["get"]>): ReturnType<PodTemplates["get"]> {
  return { ...pod, spec: { ...pod.spec, activeDeadlineSeconds: ENDS_AFTER_SECONDS } };
}

/** Whether it can connect during all of this time. */
async function connectsFor(engine: KubernetesEngine, sandbox: Sandbox, ms: number): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end; ) if (!(await connects(engine, sandbox))) return false;
  return true;
}

async function connects(engine: KubernetesEngine, { commands }: Sandbox): Promise<boolean> {
  if (commands === undefined) throw new Error("the pod has no init");
  const signal = AbortSignal.timeout(START_MS);
  await using init = await connectInit(commands.address, engine.commands.key, signal);
  const { stdout, stderr } = await init.run({ argv: ["node", "-e", CONNECT], env: commands.defaults?.env ?? {}, abort: signal });
  const word = String(stdout).trim();
  if (word !== "connected" && word !== "refused") throw new Error(`Node does not run in the base image: ${String(stderr).trim()}`);
  return word === "connected";
}
