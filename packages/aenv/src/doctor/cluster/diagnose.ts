import { messageOf } from "@aenv/contract";
import { clusterAccess, engines, KubernetesApi, type PodTemplates, readTemplates } from "@aenv/sandbox";
import type { ServerConfig } from "@aenv/server";
import type { Check } from "../check.ts";
import { clusterChecks, failed, passed } from "./checks.ts";
import { readFacts } from "./facts.ts";
import { type Trial, tryPods } from "./trial.ts";

const TIMEOUT_MS = 15_000;
const DEFAULT_TEMPLATE = "singleContainer";

const POD = { name: "pod", use: "starts the base image and runs a command in it" };
const NETWORK = { name: "network policies", use: "sandboxes without outgoing connections" };

/** The checks without which the engine does not work. The others are about what it is used for. */
const needed: readonly string[] = engines.kubernetes.variants.flatMap(({ needs }) => needs);

/** Everything about the cluster of the configuration. Starts two pods and removes them. */
export async function diagnoseCluster(config: ServerConfig): Promise<readonly Check[]> {
  let templates: PodTemplates;
  try {
    templates = readTemplates(config.podTemplates);
  } catch (error) {
    return [
      failed(
        { name: "pod templates", use: "pods of sandboxes" },
        messageOf(error),
        "correct it, or name another folder with --pod-templates",
      ),
    ];
  }
  const template = templates.get(DEFAULT_TEMPLATE);
  const api = new KubernetesApi(clusterAccess(config));
  try {
    const facts = await readFacts(api, config, AbortSignal.timeout(TIMEOUT_MS));
    const checks = clusterChecks({ config, template, templateClasses: classesOf(templates), facts });
    const stopped = checks.find(({ name, ok }) => needed.includes(name) && !ok);
    if (stopped !== undefined) return [...checks, failed(POD, `not tried: ${stopped.name} failed`, stopped.get ?? "")];
    return [...checks, ...(await trialChecks(config, templates))];
  } finally {
    await api.close();
  }
}

async function trialChecks(config: ServerConfig, templates: PodTemplates): Promise<Check[]> {
  const { baseImage, kubeNamespace: namespace } = config;
  if (baseImage === null)
    return [failed(POD, "no base image is named", "build one as deploy/images describes, and name it with --base-image")];
  try {
    const trial = await tryPods(config, baseImage, templates);
    const policy = pullPolicy(templates);
    return [
      passed(POD, `${baseImage} runs after ${(trial.startMs / 1_000).toFixed(1)} s (pull policy ${policy})`),
      networkCheck(trial, namespace),
    ];
  } catch (error) {
    return [
      failed(
        POD,
        messageOf(error),
        `see why with: kubectl --namespace ${namespace} get events. An image: push it to a registry that the nodes reach, name pull secrets in a pod template. An address: run this command where pods can be reached, such as in the cluster`,
      ),
    ];
  }
}

function classesOf(templates: PodTemplates): Record<string, string> {
  const classes = templates.names.map((name) => [name, templates.get(name).spec.runtimeClassName] as const);
  return Object.fromEntries(classes.filter((one): one is readonly [string, string] => typeof one[1] === "string"));
}

function pullPolicy(templates: PodTemplates): string {
  const { containers } = templates.get(DEFAULT_TEMPLATE).spec;
  return (containers.find(({ name }) => name === "main") ?? containers[0])?.imagePullPolicy ?? "of the cluster";
}

function networkCheck({ egress }: Trial, namespace: string): Check {
  switch (egress) {
    case null:
      return failed(
        NETWORK,
        "the setting kubeNetworkPolicies is off: sandboxes connect to everywhere",
        "remove --kube-network-policies false",
      );
    case "blocked":
      return passed(NETWORK, `enforced: the policy aenv-no-egress of ${namespace} blocks connections`);
    case "unknown":
      return passed(NETWORK, "not known: pods without a policy do not reach the API server either");
    case "open":
      return failed(
        NETWORK,
        "not enforced: a pod without egress connected to the API server",
        "install a network plugin that enforces NetworkPolicies, such as Calico or Cilium",
      );
  }
}
