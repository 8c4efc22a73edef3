import type { ServiceRecord } from "@aenv/contract";
import type { KubernetesObject } from "@aenv/sandbox";
import { loadTestImage } from "@aenv/sandbox/test-image";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, kubeconfigPath, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { loadBaseImage } from "../testing/base-image.ts";
import { callTool } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

/** A server that says what it was given, and remembers what it is told in its storage. */
const server = `
  const { appendFileSync, existsSync, readFileSync } = require("node:fs");
  const { AENV_STORAGE, AENV_TYPE, GREETING, PORT, envNAME } = process.env;
  process.on("SIGTERM", () => process.exit());
  const file = AENV_STORAGE + "/notes.txt";
  require("node:http").createServer((request, response) => {
    if (request.url.startsWith("/note/")) appendFileSync(file, request.url.slice(6));
    const notes = AENV_STORAGE && existsSync(file) ? readFileSync(file, "utf8") : null;
    response.end(JSON.stringify({ AENV_TYPE, GREETING, PORT, envNAME, notes, host: require("node:os").hostname() }));
  }).listen(Number(PORT), "0.0.0.0");
`;

/** The volumes of the cluster for tests are folders of its node, which belong to root. */
const template = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "placeholder" },
  spec: {
    selector: { matchLabels: { app: "placeholder" } },
    template: {
      metadata: { labels: { app: "placeholder" } },
      spec: {
        initContainers: [
          {
            name: "permissions",
            command: ["/bin/sh", "-c", "[ ! -d /data ] || chmod 777 /data"],
            securityContext: { runAsUser: 0, runAsNonRoot: false },
            volumeMounts: [{ name: "data", mountPath: "/home/admin/data" }],
          },
        ],
        containers: [{ name: "main", volumeMounts: [{ name: "data", mountPath: "/home/admin/data" }] }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "placeholder-pvc" } }],
      },
    },
  },
};

const soon = { timeout: 90_000, interval: 200 };

interface Deployed extends KubernetesObject {
  readonly spec: {
    readonly replicas: number;
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
}

describeNeeding("kubernetes", "services of a platform with the engine kubernetes", () => {
  let namespace: TestNamespace;
  let image: string;
  let baseImage: string;
  let platform: Platform;
  let templates: Tree;

  beforeAll(async () => {
    [namespace, image, baseImage] = await Promise.all([openTestNamespace(), loadTestImage(), loadBaseImage()]);
    const labels = { "pod-security.kubernetes.io/enforce": "baseline" };
    await namespace.api.patch(`/api/v1/namespaces/${namespace.name}`, { metadata: { labels } });
    templates = temporaryTree({ "deployment.yaml": template });
    const cluster = { engine: "kubernetes", kubeconfig: kubeconfigPath(), kubeNamespace: namespace.name, podTemplates: templates.path };
    platform = await startPlatform({ flags: { ...cluster, baseImage, dataDir: "/var/lib/aenv", round: "500ms" } });
    const artifacts = [{ type: "image", content: image }];
    const runtime = { command: ["/usr/bin/node", "-e", server] };
    await platform.demand("POST", "/env", { name: "shop", version: "1.0.0", artifacts, runtime });
  }, 180_000);

  afterAll(async () => {
    await platform?.close();
    templates?.[Symbol.dispose]();
    await namespace?.[Symbol.asyncDispose]();
  }, 60_000);

  const deployments = (id: string) => `/apis/apps/v1/namespaces/${namespace.name}/deployments/${id}`;
  const look = (id: string) => platform.demand("GET", `/env-service/${id}`) as Promise<ServiceRecord>;
  const call = async (id: string, path = "/") => (await fetch(`${platform.dataUrl}/env-service/${id}${path}`)).json();
  const untilRunning = (id: string, available: number) =>
    vi.waitFor(async () => expect(await look(id)).toMatchObject({ status: "Running", available_replicas: available }), soon);
  const findClaim = (name: string) => namespace.api.find(namespace.path("persistentvolumeclaims", name));

  it("are a Deployment, a Service and a claim, which keep what they hold while variables change", { timeout: 300_000 }, async () => {
    const small = { cpu_request: "10m", cpu_limit: "1C", memory_request: "32Mi", memory_limit: "256Mi" };
    const made = (await platform.demand("POST", "/env-service", {
      envName: "shop",
      service_name: "counter",
      environment_variables: { GREETING: "hello" },
      storage_size: "64Mi",
      pvc_name: "goods",
      mount_path: "/data",
      port: 9000,
      ...small,
    })) as ServiceRecord;
    expect(made).toMatchObject({ id: "counter", status: "Creating", replicas: 1, available_replicas: 0, pvc_name: "goods" });
    expect(made.service_url).toBe(`counter.${namespace.name}.svc.cluster.local:9000`);
    await untilRunning("counter", 1);
    expect(await call("counter", "/note/a")).toMatchObject({
      AENV_TYPE: "service",
      GREETING: "hello",
      PORT: "9000",
      envNAME: "shop",
      notes: "a",
    });
    expect(await findClaim("goods")).not.toBeNull();
    expect(await namespace.api.find(namespace.path("services", "counter"))).toMatchObject({
      spec: { ports: [{ port: 9000, targetPort: 9000 }] },
    });

    const refused = await platform.ask("PUT", "/env-service/counter", { replicas: 2 });
    expect(refused).toMatchObject({ success: false, message: expect.stringContaining("replicas must be 1") });
    const changed = (await platform.demand("PUT", "/env-service/counter", { environment_variables: { GREETING: "bye" } })) as ServiceRecord;
    expect(changed.status).toBe("Updating");
    await vi.waitFor(async () => expect(await call("counter")).toMatchObject({ GREETING: "bye", notes: "a" }), soon);

    await platform.demand("DELETE", "/env-service/counter");
    expect(await namespace.api.find(deployments("counter"))).toBeNull();
    expect(await namespace.api.find(namespace.path("services", "counter"))).toBeNull();
    expect(await findClaim("goods")).not.toBeNull();
    const other = await platform.ask("POST", "/env-service", { envName: "shop", storage_size: "64Mi", pvc_name: "goods", owner: "eve" });
    expect(other).toMatchObject({ success: false, message: expect.stringContaining("the storage 'goods' is not one of 'eve'") });
    const again = { envName: "shop", service_name: "counter", storage_size: "64Mi", pvc_name: "goods", mount_path: "/data", ...small };
    await platform.demand("POST", "/env-service", again);
    await untilRunning("counter", 1);
    expect(await call("counter")).toMatchObject({ notes: "a" });
    await platform.demand("DELETE", "/env-service/counter?deleteStorage=true");
    await vi.waitFor(async () => expect(await findClaim("goods")).toBeNull(), soon);
  });

  it("are scaled, share the calls, and are put right when somebody changes or deletes their objects", { timeout: 300_000 }, async () => {
    await platform.demand("POST", "/env-service", { envName: "shop", service_name: "till", replicas: 1 });
    await untilRunning("till", 1);
    await platform.demand("PUT", "/env-service/till", { replicas: 2 });
    await untilRunning("till", 2);
    const hosts = new Set<unknown>();
    for (let n = 0; n < 4; n++) hosts.add(((await call("till")) as { host: string }).host);
    expect(hosts.size).toBe(2);

    const edit = { spec: { replicas: 1, template: { spec: { containers: [{ name: "main", image: "aenv.local/other:1" }] } } } };
    await namespace.api.patch(deployments("till"), edit);
    await namespace.api.delete(namespace.path("services", "till"));
    await vi.waitFor(async () => {
      const found = await namespace.api.get<Deployed>(deployments("till"));
      expect(found.spec).toMatchObject({ replicas: 2, template: { spec: { containers: [{ image }] } } });
      expect(await namespace.api.find(namespace.path("services", "till"))).not.toBeNull();
    }, soon);
    const { metadata: before } = await namespace.api.get(deployments("till"));
    await namespace.api.delete(deployments("till"));
    await vi.waitFor(async () => expect((await namespace.api.get(deployments("till"))).metadata.uid).not.toBe(before.uid), soon);
    await untilRunning("till", 2);
    const { metadata: settled } = await namespace.api.get<KubernetesObject & { metadata: { generation: number } }>(deployments("till"));
    // Two changes at most: a round without a difference sends nothing.
    expect(settled.generation).toBeLessThanOrEqual(2);

    await platform.demand("PUT", "/env-service/till", { image: "aenv.local/no-such-image:1" });
    await vi.waitFor(async () => expect((await look("till")).reason).toContain("aenv.local/no-such-image:1"), soon);
    expect(await call("till")).toMatchObject({ envNAME: "shop" });
    await platform.demand("DELETE", "/env-service/till");
    expect(await namespace.api.find(deployments("till"))).toBeNull();
  });

  it("of a bundle are the same, and every new pod is sent the bundle", { timeout: 300_000 }, async () => {
    const envName = await publish(platform, projects.probe);
    const variableOf = async (name: string) =>
      (await callTool(`${platform.dataUrl}/env-service/desk/mcp`, "variable", { name })).text?.replaceAll('"', "");
    const until = (name: string, value: string) => vi.waitFor(async () => expect(await variableOf(name)).toBe(value), soon);
    const podsOf = async () => (await namespace.pods()).filter(({ metadata }) => metadata.labels?.["aenv.io/service"] === "desk");
    const storage = { storage_size: "64Mi", pvc_name: "drawer", mount_path: "/data" };
    const made = { envName, service_name: "desk", environment_variables: { GREETING: "hello" }, ...storage };
    expect((await platform.demand("POST", "/env-service", made)) as ServiceRecord).toMatchObject({
      status: "Creating",
      service_url: `desk.${namespace.name}.svc.cluster.local:8081`,
    });
    await untilRunning("desk", 1);
    expect([await variableOf("GREETING"), await variableOf("AENV_STORAGE")]).toEqual(["hello", "/data"]);
    expect(await findClaim("drawer")).not.toBeNull();
    expect(await platform.ask("PUT", "/env-service/desk", { replicas: 2 })).toMatchObject({ message: /replicas must be 1/ });

    // A program that ends is started again in its pod, which still has the bundle.
    const [first] = await podsOf();
    await callTool(`${platform.dataUrl}/env-service/desk/mcp`, "crash").catch(() => undefined);
    await vi.waitFor(async () => expect((await podsOf())[0]?.status?.containerStatuses?.[0]?.restartCount).toBe(1), soon);
    await until("GREETING", "hello");
    expect((await podsOf()).map(({ metadata }) => metadata.uid)).toEqual([first?.metadata.uid]);

    await namespace.api.delete(namespace.path("pods", first?.metadata.name), { graceSeconds: 0 });
    await vi.waitFor(async () => expect((await podsOf())[0]?.metadata.uid).not.toBe(first?.metadata.uid), soon);
    await until("GREETING", "hello");
    await platform.demand("PUT", "/env-service/desk", { environment_variables: { GREETING: "bye" } });
    await until("GREETING", "bye");

    // An image has the whole program.
    await platform.demand("PUT", "/env-service/desk", { image: "aenv.local/no-such-image:1" });
    await vi.waitFor(async () => {
      const { spec } = await namespace.api.get<Deployed>(deployments("desk"));
      expect(spec.template.spec.containers).toMatchObject([{ image: "aenv.local/no-such-image:1" }]);
      expect(spec.template.spec.containers[0]).not.toHaveProperty("command");
    }, soon);
    await platform.demand("DELETE", "/env-service/desk?deleteStorage=true");
    expect(await namespace.api.find(deployments("desk"))).toBeNull();
    await vi.waitFor(async () => expect(await findClaim("drawer")).toBeNull(), soon);
  });
});
