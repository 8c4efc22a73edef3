import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KubernetesObject } from "@aenv/sandbox";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadBaseImage } from "../../testing/base-image.ts";
import { aenv } from "../../testing/cli.ts";

interface Answer {
  readonly works: boolean;
  readonly parts: readonly { readonly name: string; readonly ok: boolean; readonly detail: string; readonly get: string | null }[];
}

describeNeeding("kubernetes", "doctor --engine kubernetes", () => {
  let namespace: TestNamespace;
  let baseImage: string;
  let tree: Tree;

  beforeAll(async () => {
    tree = temporaryTree();
    [namespace, baseImage] = await Promise.all([openTestNamespace(), loadBaseImage()]);
  }, 180_000);

  afterAll(async () => {
    tree?.[Symbol.dispose]();
    await namespace?.[Symbol.asyncDispose]();
  }, 60_000);

  async function diagnose(kubeconfig: string, ...options: readonly string[]) {
    const flags = ["--engine", "kubernetes", "--kubeconfig", kubeconfig, "--kube-namespace", namespace.name, ...options, "--json"];
    const { stdout, code } = await aenv(["doctor", ...flags], { env: { PATH: tree.path, AENV_HOME: join(tree.path, "home") } });
    const { works, parts } = JSON.parse(stdout) as Answer;
    return { works, code, part: (name: string) => parts.find((one) => one.name === name) };
  }

  it("starts a pod, sees that policies are enforced, and leaves no pod", async () => {
    const { works, part } = await diagnose(kubeconfigPath() ?? "", "--base-image", baseImage);
    expect(part("pod")).toMatchObject({ ok: true, detail: expect.stringMatching(/runs after [\d.]+ s \(pull policy IfNotPresent\)/) });
    expect(part("network policies")).toMatchObject({ ok: true, detail: expect.stringContaining("enforced") });
    for (const name of ["cluster rights", "quota", "pod security"]) expect(part(name), name).toMatchObject({ ok: true });
    expect(works).toBe(true);
    expect(await namespace.pods()).toEqual([]);
  }, 180_000);

  it("fails with what an account lacks and how to give it, without starting a pod", async () => {
    const { works, code, part } = await diagnose(await weakAccount(), "--base-image", baseImage);
    expect(part("cluster rights")).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^system:serviceaccount:\S+:weak may not list pods, watch pods, create pods, .*get pods\/log/),
      get: expect.stringContaining(`--serviceaccount=${namespace.name}:weak`),
    });
    // The policy was created by the test before.
    expect(part("cluster rights")?.detail).not.toContain("create networkpolicies");
    expect(part("storage classes")?.detail).toContain("not known");
    expect(part("pod")).toMatchObject({ ok: false, detail: "not tried: cluster rights failed" });
    expect({ works, code }).toEqual({ works: false, code: 1 });
  }, 60_000);

  it("fails with the reason of the cluster for an image that nobody has, and with the quota that is used up", async () => {
    const missing = await diagnose(kubeconfigPath() ?? "", "--base-image", "localhost:9/none:1");
    expect(missing.part("pod")).toMatchObject({ ok: false, detail: expect.stringMatching(/image/) });
    await namespace.api.create(namespace.path("resourcequotas"), {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "none" },
      spec: { hard: { pods: "0" } },
    } as KubernetesObject);
    const full = await diagnose(kubeconfigPath() ?? "", "--base-image", baseImage);
    expect(full.part("quota")).toMatchObject({ ok: false, detail: "no capacity for another pod: pods of none is used up" });
    expect(full.works).toBe(false);
  }, 120_000);

  /** The kubeconfig of a service account that may only read single pods and policies. */
  async function weakAccount(): Promise<string> {
    const { api, name, access } = namespace;
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
    const metadata = { name: "weak" };
    await api.create(namespace.path("serviceaccounts"), { apiVersion: "v1", kind: "ServiceAccount", metadata });
    await api.create(`${roles}/roles`, {
      metadata,
      rules: [{ apiGroups: ["", "networking.k8s.io"], resources: ["pods", "networkpolicies"], verbs: ["get"] }],
    } as KubernetesObject);
    await api.create(`${roles}/rolebindings`, {
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "weak" },
      subjects: [{ kind: "ServiceAccount", name: "weak", namespace: name }],
    } as KubernetesObject);
    const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata, spec: {} } as KubernetesObject;
    const { status } = (await api.create(namespace.path("serviceaccounts", "weak/token"), asked)) as unknown as {
      status: { token: string };
    };
    const file = join(tree.path, "kubeconfig");
    const cluster = {
      server: access.server,
      ...(access.ca !== undefined && { "certificate-authority-data": Buffer.from(access.ca).toString("base64") }),
    };
    writeFileSync(
      file,
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
        clusters: [{ name: "c", cluster }],
        users: [{ name: "u", user: { token: status.token } }],
      }),
    );
    return file;
  }
});
