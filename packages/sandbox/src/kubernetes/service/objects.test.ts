import { describe, expect, it } from "vitest";
import type { ServiceSpec } from "../../engine/service.ts";
import { objectsOf, type ServiceInput } from "./objects.ts";
import { defaultServiceTemplates } from "./templates.ts";
import type { ServiceObjects } from "./types.ts";

const spec: ServiceSpec = {
  id: "counter",
  owner: "ada",
  environment: { name: "shop", version: "1.0.0" },
  replicas: 2,
  image: "team/shop:1",
  command: [],
  port: 9000,
  healthPath: null,
  variables: { AENV_TYPE: "service", GREETING: "hello" },
  storage: null,
  requests: {},
  limits: {},
};
const storage = { name: "goods", size: "3Gi", mountPath: "/data" };

function build(change: Partial<ServiceSpec> = {}, more: Partial<ServiceInput> = {}): ServiceObjects {
  return objectsOf({
    homeId: "home",
    spec: { ...spec, ...change },
    templates: defaultServiceTemplates,
    egress: "none",
    initKey: "KEY",
    ...more,
  });
}

const mainOf = ({ deployment }: ServiceObjects) => deployment.spec.template.spec.containers[0];

describe("the objects of a service", () => {
  it("have its name, the labels of the original, and selectors that find its pods only", () => {
    const { deployment, service, claim } = build();
    for (const { metadata } of [deployment, service]) {
      expect(metadata.name).toBe("counter");
      expect(metadata.labels).toMatchObject({
        "business/aenv-name": "shop",
        "business/aenv-version": "1.0.0",
        "business/aenv-owner": "ada",
        "aenv.io/services-of": "home",
        "aenv.io/service": "counter",
      });
    }
    expect(deployment.spec.selector.matchLabels).toEqual({ app: "counter" });
    expect(deployment.spec.template.metadata.labels).toMatchObject({
      app: "counter",
      "aenv.io/egress": "none",
      "business/aenv-name": "shop",
    });
    expect(service.spec).toMatchObject({ selector: { app: "counter" }, ports: [{ name: "http", port: 9000, targetPort: 9000 }] });
    expect(claim).toBeNull();
  });

  it("run the image with its variables, as strictly as the restricted standard allows", () => {
    const made = build({ variables: { GREETING: "hello", AENV_TYPE: "other" }, replicas: 3 }, { runtimeClass: "gvisor" });
    expect(made.deployment.spec).toMatchObject({ replicas: 3 });
    expect(made.deployment.spec.template.spec).toMatchObject({
      automountServiceAccountToken: false,
      runtimeClassName: "gvisor",
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    });
    const main = mainOf(made);
    expect(main).toMatchObject({
      image: "team/shop:1",
      ports: [{ containerPort: 9000 }],
      readinessProbe: { tcpSocket: { port: 9000 } },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    });
    expect(main?.command).toBeUndefined();
    const values = Object.fromEntries((main?.env ?? []).map(({ name, value }) => [name, value]));
    expect(values).toEqual({ AENV_OWN_CONNECTIONS: "refuse", AENV_TYPE: "other", PORT: "9000", GREETING: "hello" });
  });

  it("tell a command where to listen, and probe the path that says that it is ready", () => {
    const main = mainOf(build({ command: ["serve", "--port={port}"], healthPath: "/ready" }));
    expect(main).toMatchObject({ command: ["serve", "--port=9000"], readinessProbe: { httpGet: { path: "/ready", port: 9000 } } });
    expect(main?.env).toContainEqual({ name: "HOST", value: "0.0.0.0" });
  });

  it("with a bundle have an init that starts the program when it has its files, in the base image or in another one", () => {
    const bundle = { name: "bundle-1", open: async () => "/bundles/1", cwd: "src", baseImage: "team/shop:1" };
    const command = ["node", "a$(b).js", "--port", "{port}"];
    const own = build({ command, bundle }).deployment.spec.template.spec;
    const waits = ["--await", "/aenv/bundles/bundle-1", "--cwd", "/aenv/bundles/bundle-1/src"];
    const init = ["--listen", "tcp::61080", "--key", "KEY", ...waits, "--", "node", "a$$(b).js", "--port", "9000"];
    expect(own.containers[0]).toMatchObject({
      command: ["/opt/aenv/init", ...init],
      volumeMounts: [{ name: "aenv-bundles", mountPath: "/aenv/bundles" }],
      startupProbe: { tcpSocket: { port: 9000 } },
    });
    expect(own.volumes).toEqual([{ name: "aenv-bundles", emptyDir: {} }]);
    expect(own.initContainers).toBeUndefined();
    const other = build({ command, bundle: { ...bundle, baseImage: "base:1" }, storage }).deployment.spec.template.spec;
    expect(other).toMatchObject({
      initContainers: [{ image: "base:1", command: ["/opt/aenv/init", "--copy-to", "/.aenv/init"] }],
      containers: [{ image: "team/shop:1", command: ["/.aenv/init", ...init] }],
    });
    expect(other.volumes?.map(({ name }) => name)).toEqual(["data", "aenv-bundles", "aenv-init"]);
    expect(other.containers[0]?.volumeMounts?.map(({ name }) => name)).toEqual(["data", "aenv-bundles", "aenv-init"]);
  });

  it("with storage mount a claim, which one pod at a time has; without it they have no volume", () => {
    const { deployment, claim } = build({ replicas: 1, storage });
    expect(claim).toMatchObject({
      metadata: { name: "goods", annotations: { "aenv.io/owner": "ada" } },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "3Gi" } } },
    });
    expect(claim?.metadata.labels?.["aenv.io/service"]).toBeUndefined();
    expect(deployment.spec).toMatchObject({ strategy: { type: "Recreate" } });
    expect(deployment.spec.template.spec).toMatchObject({
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "goods" } }],
      containers: [{ volumeMounts: [{ name: "data", mountPath: "/data" }] }],
    });
    const without = build().deployment.spec;
    expect(without.strategy).toBeUndefined();
    expect(JSON.stringify(without)).not.toMatch(/volume|claim/i);
  });

  it("have the resources of the request over those of the template, and no request above its limit", () => {
    const main = mainOf(build({ requests: { cpu: "2C", memory: "1Gi" }, limits: { cpu: "1", memory: "512Mi", ephemeralStorage: "" } }));
    expect(main?.resources).toEqual({
      limits: { cpu: "1", memory: "512Mi", "ephemeral-storage": "10Gi" },
      requests: { cpu: "1", memory: "512Mi", "ephemeral-storage": "128Mi" },
    });
    expect(() => build({ limits: { memory: "much" } })).toThrow("the limit of memory is 'much'");
    expect(() => build({ requests: { cpu: "0" } })).toThrow("must be more than nothing");
  });

  it("leave out labels that Kubernetes does not accept", () => {
    const { labels } = build({ owner: "ada@example.com" }).deployment.metadata;
    expect(labels?.["business/aenv-owner"]).toBeUndefined();
    expect(labels?.["business/aenv-name"]).toBe("shop");
  });
});
