import { readTemplates, roomIn } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import { clusterChecks, grantCommands } from "./checks.ts";
import type { ClusterFacts } from "./facts.ts";

const template = readTemplates(null).get("singleContainer");
const config = { kubeNamespace: "pods-of-aenv", runtime: "runc", runscClass: null } as const;
const GOOD: ClusterFacts = {
  account: "system:serviceaccount:aenv:server",
  refused: [],
  namespaceLabels: { "pod-security.kubernetes.io/enforce": "restricted" },
  quotas: [],
  runtimeClasses: ["gvisor"],
  storageClasses: [{ name: "standard", isDefault: true }],
};

function checksOf(
  facts: Partial<ClusterFacts>,
  more: Partial<Parameters<typeof clusterChecks>[0]["config"]> = {},
  templateClasses: Readonly<Record<string, string>> = {},
) {
  const all = clusterChecks({ config: { ...config, ...more }, template, templateClasses, facts: { ...GOOD, ...facts } });
  return Object.fromEntries(all.map((check) => [check.name, check]));
}

describe("the checks of a cluster", () => {
  it("pass where everything is there, and where this account may not look", () => {
    const nothing = { account: null, namespaceLabels: null, quotas: null, runtimeClasses: null, storageClasses: null };
    for (const facts of [{}, nothing]) for (const [name, { ok }] of Object.entries(checksOf(facts))) expect(ok, name).toBe(true);
    expect(checksOf(nothing).quota?.detail).toContain("not known");
  });

  it("name each missing right, and the commands that give it to this account", () => {
    const refused = [
      { verb: "watch", group: "", resource: "pods" },
      { verb: "get", group: "", resource: "pods/log" },
      { verb: "get", group: "networking.k8s.io", resource: "networkpolicies" },
      { verb: "create", group: "networking.k8s.io", resource: "networkpolicies" },
    ];
    const check = checksOf({ refused })["cluster rights"];
    expect(check).toMatchObject({ ok: false, detail: expect.stringContaining("may not watch pods, get pods/log, get networkpolicies") });
    expect(grantCommands({ refused, account: GOOD.account }, "pods-of-aenv").slice(-2)).toEqual([
      "kubectl --namespace pods-of-aenv create role aenv-networkpolicies-networking-k8s-io --verb=get,create --resource=networkpolicies.networking.k8s.io",
      "kubectl --namespace pods-of-aenv create rolebinding aenv-networkpolicies-networking-k8s-io --role=aenv-networkpolicies-networking-k8s-io --serviceaccount=aenv:server",
    ]);
    expect(grantCommands({ refused, account: "jane" }, "pods-of-aenv")[1]).toContain("--user='jane'");
  });

  it("say which quota is used up", () => {
    const quotas = [{ name: "small", hard: { pods: "3", "limits.memory": "8Gi" }, used: { pods: "1", "limits.memory": "6Gi" } }];
    expect(roomIn(quotas, template)).toEqual({ pods: 0, limitedBy: "limits.memory of small" });
    expect(checksOf({ quotas }).quota).toMatchObject({ ok: false, get: expect.stringContaining("edit resourcequota small") });
  });

  it("count the pods that still fit, by what runs out first", () => {
    const hard = { pods: "100", "requests.cpu": "1", memory: "4Gi", services: "0" };
    expect(roomIn([{ name: "q", hard, used: { "requests.cpu": "500m" } }], template)).toEqual({ pods: 10, limitedBy: "requests.cpu of q" });
    expect(roomIn([{ name: "q", hard: { services: "0" }, used: {} }], template)).toBeNull();
  });

  it("fail for a runtime class that is asked for and does not exist", () => {
    expect(checksOf({}, { runscClass: "gvisor" })["runtime classes"]).toMatchObject({ ok: true, detail: "gvisor exists" });
    expect(checksOf({}, { runscClass: "kata" })["runtime classes"]).toMatchObject({
      ok: false,
      detail: "there is no RuntimeClass 'kata'; the cluster has: gvisor",
    });
    const classes = { gpu: "nvidia", plain: "gvisor" };
    expect(checksOf({}, {}, classes)["runtime classes"]).toMatchObject({
      ok: false,
      detail: "there is no RuntimeClass 'nvidia' of the pod template gpu; the cluster has: gvisor",
      get: "install it, or change runtimeClassName of the pod template gpu",
    });
    const both = checksOf({ runtimeClasses: ["gvisor", "nvidia"] }, { runscClass: "gvisor" }, classes);
    expect(both["runtime classes"]).toMatchObject({ ok: true, detail: "gvisor, nvidia exist" });
    expect(checksOf({}, { runtime: "runsc" })["runtime classes"]).toMatchObject({
      ok: false,
      get: expect.stringContaining("--runsc-class"),
    });
  });

  it("fail without a default storage class, with the command that makes one", () => {
    const get = "kubectl annotate storageclass slow storageclass.kubernetes.io/is-default-class=true";
    expect(checksOf({ storageClasses: [{ name: "slow", isDefault: false }] })["storage classes"]).toMatchObject({ ok: false, get });
    expect(checksOf({ storageClasses: [] })["storage classes"]).toMatchObject({ ok: false, detail: "the cluster has none" });
  });

  it("fail for a namespace that admits more than restricted pods, with the command that changes it", () => {
    const get = "kubectl label --overwrite namespace pods-of-aenv pod-security.kubernetes.io/enforce=restricted";
    expect(checksOf({ namespaceLabels: {} })["pod security"]).toMatchObject({
      ok: false,
      get,
      detail: "namespace pods-of-aenv admits all pods",
    });
    const labels = { "pod-security.kubernetes.io/enforce": "baseline" };
    expect(checksOf({ namespaceLabels: labels })["pod security"]?.detail).toBe("namespace pods-of-aenv admits baseline pods");
  });
});
