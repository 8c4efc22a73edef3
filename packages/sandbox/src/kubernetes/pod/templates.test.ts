import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { readTemplates } from "./templates.ts";

/** As in the values of the original's chart. */
const ORIGINAL_DUAL = `
apiVersion: v1
kind: Pod
metadata:
  name: placeholder
  namespace: aenv-sandbox
  labels: { template-type: dualContainer }
spec:
  containers:
    - name: main
      image: placeholder
      resources: { limits: { cpu: 2, memory: 4Gi } }
      volumeMounts:
        - { name: containerd, mountPath: /run/containerd }
        - { name: shared, mountPath: /shared }
    - name: second
      image: placeholder
      command: ["/bin/sh", "-c", "--"]
      args: ["sleep infinity"]
      volumeMounts: [{ name: shared, mountPath: /shared }]
  volumes:
    - { name: containerd, hostPath: { path: /var/run/containerd } }
    - { name: shared, emptyDir: {} }
`;

describe("pod templates", () => {
  it("say whose environments may name them: nobody's unless listed, and all for those of the platform", () => {
    const pod = (owners?: string) =>
      `kind: Pod\nmetadata: ${JSON.stringify(owners === undefined ? {} : { annotations: { "aenv.io/allowed-owners": owners } })}\nspec: { containers: [{ name: main }] }`;
    using folder = temporaryTree({
      "privileged.yaml": pod(),
      "gpu.yaml": pod("ada, bob,"),
      "spot.yaml": pod("*"),
      "SingleContainer.yaml": pod(),
    });
    const { ownersOf } = readTemplates(folder.path);
    const found = ["privileged", "Privileged", "GPU", "spot", "singleContainer", "dualContainer"].map(ownersOf);
    expect(found).toEqual([[], [], ["ada", "bob"], ["*"], ["*"], ["*"]]);
  });

  it("of a folder replace those of the platform, whatever the case of their names", () => {
    using folder = temporaryTree({
      "dualContainer.yaml": ORIGINAL_DUAL,
      "gpu.yml": "kind: Pod\nspec: { containers: [{ name: main }], nodeSelector: { gpu: 'yes' } }",
      "deployment.yaml": "kind: Deployment\nspec: {}",
      "notes.txt": "no template",
    });
    const templates = readTemplates(folder.path);
    expect(templates.get("GPU").spec.nodeSelector).toEqual({ gpu: "yes" });
    expect(templates.get("DualContainer").metadata).toEqual({ name: "placeholder", labels: { "template-type": "dualContainer" } });
    expect(templates.get("singlecontainer").spec.containers).toHaveLength(1);
    expect(() => templates.get("deployment")).toThrow(/no pod template 'deployment'; this server has dualContainer, gpu, singleContainer/);
  });

  it("lose the sockets of the machine that those of the original mount, with a warning", () => {
    using folder = temporaryTree({ "dualContainer.yaml": ORIGINAL_DUAL });
    const { get, warnings } = readTemplates(folder.path);
    const { containers, volumes } = get("dualContainer").spec;
    expect(volumes).toEqual([{ name: "shared", emptyDir: {} }]);
    expect(containers.map(({ volumeMounts }) => volumeMounts)).toEqual([
      [{ name: "shared", mountPath: "/shared" }],
      [{ name: "shared", mountPath: "/shared" }],
    ]);
    expect(warnings).toEqual([expect.stringMatching(/'dualContainer'.*\/var\/run\/containerd.*left out/)]);
  });

  it.each([
    ["/", false],
    ["//run/containerd", false],
    ["/run/", false],
    ["/var", false],
    ["/var/lib", false],
    ["/opt/../var/run/docker.sock", false],
    ["/var/lib/kubelet/pods", false],
    ["/srv/agent.sock", false],
    ["/runs", true],
    ["/var/lib/data", true],
    ["/srv/cache", true],
  ])("keep the folder %s of the machine: %s", (path, isKept) => {
    const volumes = [{ name: "host", hostPath: { path } }];
    using folder = temporaryTree({ "own.yaml": { kind: "Pod", spec: { containers: [{ name: "main" }], volumes } } });
    expect(readTemplates(folder.path).get("own").spec.volumes).toEqual(isKept ? volumes : []);
  });

  it.each([
    ["not YAML", "a: [", /is not YAML/],
    ["no object", "- 1", /is not an object/],
    ["no kind", "spec: {}", /has no kind/],
    ["no containers", "kind: Pod\nspec: {}", /has no spec.containers/],
    ["a container without a name", "kind: Pod\nspec: { containers: [{ image: a }] }", /spec.containers\[0\]/],
  ])("with %s are refused by their path", (_, text, message) => {
    using folder = temporaryTree({ "bad.yaml": text });
    expect(() => readTemplates(folder.path)).toThrow(message);
    expect(() => readTemplates(folder.path)).toThrow(join(folder.path, "bad.yaml"));
  });

  it("of a folder that does not exist are an error", () => {
    expect(() => readTemplates("/nowhere")).toThrow(/\/nowhere cannot be read/);
    expect(readTemplates(null).get("dualContainer").spec.containers).toHaveLength(2);
  });
});
