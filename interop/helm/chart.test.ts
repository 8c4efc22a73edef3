import { NO_EGRESS, requiredRights } from "@aenv/sandbox";
import { describeNeeding } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { at, chart, find, type Manifest, render, runProgram, tryRender, withValues } from "./chart.ts";
import { extended, variants } from "./variants.ts";

const name = "aenv";

describeNeeding("helm", "the chart", () => {
  it.each(Object.entries({ ...variants, "a gateway and metrics": extended }))(
    "is accepted by helm lint: %s",
    { timeout: 60_000 },
    async (_, values) => {
      const ran = await withValues(values, (file) => runProgram("helm", ["lint", "--strict", chart, "--values", file]));
      expect(ran, ran.stdout + ran.stderr).toMatchObject({ code: 0 });
    },
  );

  describe("with its defaults", () => {
    it("replaces servers one by one, each after a new one is ready", async () => {
      const deployment = find(await render(), "Deployment");
      expect(at(deployment, "spec.strategy.rollingUpdate")).toEqual({ maxUnavailable: 0, maxSurge: 1 });
      expect(at(deployment, "spec.template.spec.containers.0")).toMatchObject({
        readinessProbe: { httpGet: { path: "/ready", port: "control" } },
        livenessProbe: { httpGet: { path: "/health", port: "control" } },
      });
      expect(envOf(deployment).AENV_DRAIN_TIME?.value).toBe("5s");
      expect(at<number>(deployment, "spec.template.spec.terminationGracePeriodSeconds")).toBeGreaterThan(5 + 20);
    });

    it("has one process per server, unless the settings say otherwise", async () => {
      const workers = async (values: object) => envOf(find(await render(values), "Deployment")).AENV_WORKERS?.value;
      expect(await workers({})).toBe("1");
      expect(await workers({ server: { settings: { workers: 4 } } })).toBeUndefined();
    });

    it("names its group by the namespace and the release, also if that is too long for a label", async () => {
      const group = async (namespace: string) => envOf(find(await render({}, namespace), "Deployment")).AENV_KUBE_GROUP?.value ?? "";
      expect(await group("aenv")).toBe("aenv.aenv");
      const long = await Promise.all(["a", "b"].map((last) => group(`${"n".repeat(61)}${last}`)));
      for (const one of long) expect(one).toMatch(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/);
      expect(long[0]).not.toBe(long[1]);
    });

    it("puts servers that share a volume of one node on one node", async () => {
      const affinity = async (values: object) => at(find(await render(values), "Deployment"), "spec.template.spec.affinity");
      expect(await affinity({})).toHaveProperty("podAffinity.requiredDuringSchedulingIgnoredDuringExecution");
      expect(await affinity({ persistence: { accessMode: "ReadWriteMany" } })).toHaveProperty("podAntiAffinity");
    });

    it("gives no pod more than the restricted Pod Security Standard allows", async () => {
      const manifests = await render();
      for (const kind of ["Deployment", "StatefulSet"]) {
        const pod = at(find(manifests, kind), "spec.template.spec");
        expect(pod).toMatchObject({
          securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
          containers: [
            { securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } } },
          ],
        });
      }
    });

    it("lets sandboxes connect to nowhere and be reached by servers only", async () => {
      const manifests = await render();
      const { spec, metadata } = find(manifests, "NetworkPolicy", `${name}-sandboxes`);
      expect(metadata.namespace).toBe("aenv-sandbox");
      expect(spec).toMatchObject({ podSelector: {}, policyTypes: ["Ingress", "Egress"], egress: [] });
      expect(at(spec, "ingress")).toEqual([{ from: [{ namespaceSelector: expect.anything(), podSelector: expect.anything() }] }]);
      const servers = { podSelector: { matchLabels: at(find(manifests, "Service", name), "spec.selector") } };
      expect(find(manifests, "NetworkPolicy", `${name}-redis`).spec).toMatchObject({ ingress: [{ from: [servers] }], egress: [] });
    });

    it("has the same password and token in no other place than Secrets", async () => {
      const manifests = await render();
      const secrets = manifests
        .filter(({ kind }) => kind === "Secret")
        .flatMap(({ data }) => Object.values(data as Record<string, string>));
      expect(secrets).toHaveLength(4);
      const others = JSON.stringify(manifests.filter(({ kind }) => kind !== "Secret"));
      for (const secret of secrets) {
        const text = Buffer.from(secret, "base64").toString();
        expect(text).toMatch(/^aenv_[0-9a-f]{12}_\w{27}$|^\w{40}$|^-----BEGIN PRIVATE KEY-----/);
        expect(others).not.toContain(text);
      }
    });

    it("grants rights in the namespace of sandboxes and in no other", async () => {
      const kinds = (await render()).filter(({ apiVersion }) => apiVersion.startsWith("rbac."));
      expect(kinds.map(({ kind, metadata }) => `${kind} ${metadata.namespace}`)).toEqual(["Role aenv-sandbox", "RoleBinding aenv-sandbox"]);
    });

    it("grants exactly what the engine declares that it needs", async () => {
      // The chart installs the network policy, so the engine only looks for it.
      const needed = requiredRights.map((rule) => (rule.resources.includes("networkpolicies") ? { ...rule, verbs: ["get"] } : rule));
      expect(find(await render(), "Role").rules).toEqual(needed);
      const policy = find(await render(), "NetworkPolicy", NO_EGRESS.metadata.name);
      expect(policy.spec).toEqual(NO_EGRESS.spec);
    });
  });

  describe("with other values", () => {
    it("changes the servers' pods when their settings change", async () => {
      const annotations = async (settings: object) =>
        at(find(await render({ server: { settings } }), "Deployment"), "spec.template.metadata.annotations");
      expect(await annotations({ defaultTtl: "1h" })).not.toEqual(await annotations({ defaultTtl: "2h" }));
      expect(await annotations({ defaultTtl: "1h" })).toEqual(await annotations({ defaultTtl: "1h" }));
    });

    it("begins links for agents with the address of the ingress or the gateway", async () => {
      const variable = async (values: object) => envOf(find(await render(values), "Deployment")).AENV_PUBLIC_URL?.value;
      expect(await variable({})).toBeUndefined();
      expect(await variable(variants["an ingress and quotas"])).toBe("https://data.aenv.example");
      expect(await variable({ ...variants["an ingress and quotas"], publicUrl: "https://other.example" })).toBe("https://other.example");
      expect(await variable(extended)).toBe("https://data.aenv.example");
    });

    it("reads a Redis of the operator's from a Secret, and installs none", async () => {
      const manifests = await render(variants["a Redis of your own, by a Secret"]);
      expect(manifests.filter(({ kind }) => kind === "StatefulSet")).toEqual([]);
      expect(manifests.filter(({ kind }) => kind === "Secret").map(({ metadata }) => metadata.name)).toEqual([`${name}-init`]);
      expect(envOf(find(manifests, "Deployment")).AENV_STORE?.valueFrom).toEqual({ secretKeyRef: { name: "aenv-store", key: "address" } });
    });

    it("keeps pod templates of the original's chart, which are text with the namespace of sandboxes", async () => {
      const manifests = await render({ ...variants["pod templates as YAML and as text"], sandboxNamespace: "tasks" });
      const data = at<Record<string, string>>(find(manifests, "ConfigMap", `${name}-pod-templates`), "data");
      expect(Object.keys(data).sort()).toEqual(["deployment.yaml", "gpu.yaml", "pvc.yaml", "service.yaml", "singleContainer.yaml"]);
      expect(JSON.parse(data["gpu.yaml"] ?? "")).toMatchObject({ kind: "Pod", metadata: { namespace: "tasks" } });
      expect(envOf(find(manifests, "Deployment")).AENV_POD_TEMPLATES?.value).toBe("/etc/aenv/pod-templates");
    });
  });

  it.each([
    [{ replicas: 2 }, "'replicas' not allowed"],
    [{ replicaCount: 0 }, "replicaCount"],
    [{ persistence: { size: "20 GB" } }, "persistence/size"],
    [{ persistence: { accessMode: "RWX" } }, "'ReadWriteOnce', 'ReadWriteMany'"],
    [{ service: { type: "Headless" } }, "'ClusterIP', 'NodePort', 'LoadBalancer'"],
    [{ sandboxNamespace: "Sandboxes" }, "sandboxNamespace"],
    [{ redis: { external: { url: "redis://:secret@host" } } }, "redis/external/url"],
    [{ image: "aenv-server:1" }, "got string, want object"],
    [{ podTemplates: { "../x": {} } }, "podTemplates"],
    [{ redis: { enabled: false } }, "set redis.external.url, or redis.external.existingSecret"],
    [{ replicaCount: 2, persistence: { enabled: false } }, "the servers would not see each other's bundles"],
    [{ sandboxNamespace: "aenv" }, "sandboxes need a namespace of their own, such as aenv-sandbox"],
    [{ server: { settings: { store: "memory:" } } }, "server.settings.store is set by the chart"],
    [{ server: { drainSeconds: 60 } }, "it must be at least server.drainSeconds and 25 seconds more, which are 85"],
    [{ ingress: { enabled: true } }, "set ingress.controlHost and ingress.dataHost"],
    [{ ingress: { enabled: true, controlHost: "a.example", dataHost: "a.example" } }, "are both a.example; use two host names"],
    [{ gateway: { enabled: true } }, "set gateway.parentRefs"],
    [{ podTemplates: { singleContainer: "kind: [" } }, "podTemplates.singleContainer is not valid YAML"],
    [{ podTemplates: { own: { spec: {} } } }, "podTemplates.own has no 'kind'"],
    [{ podTemplates: { pvc: { kind: "Pod" } } }, "podTemplates.pvc is a Pod; it must be a PersistentVolumeClaim"],
  ])("refuses %j and says what is wrong", { timeout: 60_000 }, async (values, message) => {
    const { code, stderr } = await tryRender(values);
    expect(stderr).toContain(message);
    expect(code).not.toBe(0);
  });
});

function envOf(deployment: Manifest): Record<string, { readonly value?: string; readonly valueFrom?: object }> {
  const variables = at<{ name: string }[]>(deployment, "spec.template.spec.containers.0.env");
  return Object.fromEntries(variables.map((variable) => [variable.name, variable]));
}
