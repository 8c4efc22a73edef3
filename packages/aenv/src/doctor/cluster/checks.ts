import { type PodTemplates, roomIn } from "@aenv/sandbox";
import type { ServerConfig } from "@aenv/server";
import type { Check } from "../check.ts";
import type { ClusterFacts } from "./facts.ts";

export interface ClusterQuestion {
  readonly config: Pick<ServerConfig, "kubeNamespace" | "runtime" | "runscClass">;
  /** The template of most sandboxes. */
  readonly template: ReturnType<PodTemplates["get"]>;
  /** The RuntimeClasses of pod templates, by the names of these. */
  readonly templateClasses: Readonly<Record<string, string>>;
  readonly facts: ClusterFacts;
}

const SECURITY_LABEL = "pod-security.kubernetes.io/enforce";

/** What the answers of the API server say. */
export function clusterChecks({ config, template, templateClasses, facts }: ClusterQuestion): Check[] {
  const { kubeNamespace: namespace } = config;
  return [
    rightsCheck(facts, namespace),
    quotaCheck(facts, template, namespace),
    runtimeCheck(facts, config, templateClasses),
    storageCheck(facts),
    securityCheck(facts, namespace),
  ];
}

function rightsCheck({ refused, account }: ClusterFacts, namespace: string): Check {
  const check = { name: "cluster rights", use: "what the account does in the namespace" };
  const who = account ?? "this account";
  if (refused.length === 0) return passed(check, `${who} may do all in ${namespace} that the server needs`);
  const detail = `${who} may not ${refused.map(({ verb, resource }) => `${verb} ${resource}`).join(", ")} in namespace ${namespace}`;
  return failed(
    check,
    detail,
    `install the chart, whose Role has these rights, or: ${grantCommands({ refused, account }, namespace).join(" && ")}`,
  );
}

/** Commands that give the account what it lacks: a Role and its binding per resource. */
export function grantCommands({ refused, account }: Pick<ClusterFacts, "refused" | "account">, namespace: string): string[] {
  const verbs = new Map<string, string[]>();
  for (const { verb, resource, group } of refused) {
    const name = group === "" ? resource : withGroup(resource, group);
    verbs.set(name, [...(verbs.get(name) ?? []), verb]);
  }
  return [...verbs].flatMap(([resource, allowed]) => {
    const role = `aenv-${resource.replace(/[^a-z0-9]+/g, "-")}`;
    return [
      `kubectl --namespace ${namespace} create role ${role} --verb=${allowed.join(",")} --resource=${resource}`,
      `kubectl --namespace ${namespace} create rolebinding ${role} --role=${role} ${subjectOf(account)}`,
    ];
  });
}

/** As kubectl writes it: `deployments.apps/scale`. */
function withGroup(resource: string, group: string): string {
  const [name, ...sub] = resource.split("/");
  return [`${name}.${group}`, ...sub].join("/");
}

function subjectOf(account: string | null): string {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):(.+)$/.exec(account ?? "") ?? [];
  return name === undefined ? `--user='${account ?? "NAME"}'` : `--serviceaccount=${namespace}:${name}`;
}

function quotaCheck({ quotas }: ClusterFacts, template: ClusterQuestion["template"], namespace: string): Check {
  const check = { name: "quota", use: "how many pods the namespace admits" };
  if (quotas === null) return passed(check, `not known: this account may not list resourcequotas in ${namespace}`);
  const left = roomIn(quotas, template);
  if (left === null) return passed(check, `no quota limits the pods of ${namespace}`);
  if (left.pods > 0) return passed(check, `capacity for ${left.pods} more pods (${left.limitedBy})`);
  return failed(
    check,
    `no capacity for another pod: ${left.limitedBy} is used up`,
    `end instances, or raise it with: kubectl --namespace ${namespace} edit resourcequota ${left.limitedBy.split(" of ").at(-1)}`,
  );
}

function runtimeCheck(
  { runtimeClasses }: ClusterFacts,
  { runtime, runscClass }: ClusterQuestion["config"],
  templateClasses: ClusterQuestion["templateClasses"],
): Check {
  const check = { name: "runtime classes", use: "pods with their own kernel" };
  const found = runtimeClasses === null || runtimeClasses.length === 0 ? "none" : runtimeClasses.join(", ");
  const install = "install gVisor on the nodes with a RuntimeClass (https://gvisor.dev/docs/user_guide/quick_start/kubernetes)";
  if (runscClass === null && runtime === "runsc")
    return failed(
      check,
      `the runtime is runsc, and no class is named; the cluster has: ${found}`,
      `${install}, and name it with --runsc-class`,
    );
  const used = [...new Set([...(runscClass === null ? [] : [runscClass]), ...Object.values(templateClasses)])];
  if (used.length === 0) return passed(check, `none is used; the cluster has: ${runtimeClasses === null ? "not known" : found}`);
  const all = used.join(", ");
  if (runtimeClasses === null)
    return passed(
      check,
      `${all}; not known whether ${used.length === 1 ? "it exists" : "they exist"}: this account may not list runtimeclasses`,
    );
  const lacking = used.find((name) => !runtimeClasses.includes(name));
  if (lacking === undefined) return passed(check, `${all} ${used.length === 1 ? "exists" : "exist"}`);
  const template = Object.keys(templateClasses).find((name) => templateClasses[name] === lacking);
  const isSetting = lacking === runscClass;
  return failed(
    check,
    `there is no RuntimeClass '${lacking}'${isSetting ? "" : ` of the pod template ${template}`}; the cluster has: ${found}`,
    isSetting
      ? `${install}, or name another one with --runsc-class`
      : `install it, or change runtimeClassName of the pod template ${template}`,
  );
}

function storageCheck({ storageClasses }: ClusterFacts): Check {
  const check = { name: "storage classes", use: "volumes of the chart and of services" };
  if (storageClasses === null) return passed(check, "not known: this account may not list storageclasses");
  const names = storageClasses.map(({ name, isDefault }) => (isDefault ? `${name} (default)` : name)).join(", ");
  if (storageClasses.some(({ isDefault }) => isDefault)) return passed(check, names);
  const [first] = storageClasses;
  if (first === undefined) return failed(check, "the cluster has none", "install a provisioner of volumes with a StorageClass");
  return failed(
    check,
    `none of them is the default: ${names}`,
    `kubectl annotate storageclass ${first.name} storageclass.kubernetes.io/is-default-class=true`,
  );
}

function securityCheck({ namespaceLabels }: ClusterFacts, namespace: string): Check {
  const check = { name: "pod security", use: "refuses pods with more rights than sandboxes need" };
  if (namespaceLabels === null) return passed(check, `not known: this account may not read namespace ${namespace}`);
  const level = namespaceLabels[SECURITY_LABEL];
  if (level === "restricted") return passed(check, `namespace ${namespace} admits restricted pods only`);
  return failed(
    check,
    level === undefined ? `namespace ${namespace} admits all pods` : `namespace ${namespace} admits ${level} pods`,
    `kubectl label --overwrite namespace ${namespace} ${SECURITY_LABEL}=restricted`,
  );
}

type Named = Pick<Check, "name" | "use">;

export function passed(check: Named, detail: string): Check {
  return { ...check, ok: true, detail, get: null };
}

export function failed(check: Named, detail: string, get: string): Check {
  return { ...check, ok: false, detail, get };
}
