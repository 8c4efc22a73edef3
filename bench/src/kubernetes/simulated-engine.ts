import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubernetesEngine, readKubeconfig, readTemplates, type Sandbox } from "@aenv/sandbox";
import { answerParent } from "../processes/answer.ts";
import { usageAnswers } from "../processes/usage.ts";

// node simulated-engine.ts <kubeconfig> <namespace> <fields of the pods' spec as JSON>: an engine whose pods exist in the API alone.
const [kubeconfig = "", namespace = "", podSpec = "{}"] = process.argv.slice(2);
const START_TIMEOUT_MS = 600_000;

/** Answers for the programs of all pods. */
const programs = createServer((_request, response) => response.end("{}"));
programs.listen(0, "127.0.0.1");
await once(programs, "listening");
const { port } = programs.address() as AddressInfo;

const home = mkdtempSync(join(tmpdir(), "aenv-bench-simulation-"));
const templates = readTemplates(null);
const engine = new KubernetesEngine({
  home,
  access: readKubeconfig(kubeconfig),
  namespace,
  baseImage: "simulated:1",
  networkPolicies: false,
  unschedulableMs: START_TIMEOUT_MS,
  templates: {
    names: templates.names,
    warnings: [],
    ownersOf: () => ["*"],
    get: (name) => {
      const pod = templates.get(name);
      return { ...pod, spec: { ...pod.spec, ...JSON.parse(podSpec) } };
    },
  },
});
const sandboxes: Sandbox[] = [];

answerParent(
  {
    ...usageAnswers(""),
    counters: () => engine.apiCounters,
    phases: () => engine.podsByPhase,
    create: ({ count, lanes }: { count: number; lanes: number }) => {
      const first = sandboxes.length;
      return timed(lanes, count, async (n) => {
        const spec = { id: `pod-${first + n}`, image: "simulated:1", command: [], variables: {}, labels: { bench: "yes" } };
        const listening = { kind: "port", port, healthPath: null } as const;
        sandboxes.push(await engine.create({ ...spec, startTimeoutMs: START_TIMEOUT_MS, listening }, new AbortController().signal));
      });
    },
    destroy: async ({ lanes }: { lanes: number }) => {
      const all = sandboxes.splice(0);
      return timed(lanes, all.length, async (n) => (all[n] as Sandbox).destroy());
    },
    close,
  },
  () => void close().then(() => process.exit(0)),
);

async function close(): Promise<void> {
  await engine.close();
  programs.close();
  programs.closeAllConnections();
  rmSync(home, { recursive: true, force: true });
}

/** Milliseconds of the work for 0 to count - 1, this many at a time. */
async function timed(lanes: number, count: number, work: (n: number) => Promise<void>): Promise<number> {
  const from = performance.now();
  let next = 0;
  const take = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(lanes, count) }, take));
  return performance.now() - from;
}
