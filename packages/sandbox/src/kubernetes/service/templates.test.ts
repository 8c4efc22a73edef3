import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { defaultServiceTemplates, readServiceTemplates } from "./templates.ts";

const service = {
  kind: "Service",
  metadata: { name: "x", namespace: "y", labels: { a: "b" } },
  spec: { selector: { app: "x" }, ports: [{ port: 1 }] },
};

it("templates of services come from the folder, and those of the platform stand in for missing ones", () => {
  expect(readServiceTemplates(null)).toEqual(defaultServiceTemplates);
  using tree = temporaryTree({ "service.yaml": service, "singleContainer.yaml": { kind: "Pod" } });
  const found = readServiceTemplates(tree.path);
  expect(found.service).toMatchObject({ metadata: { name: "placeholder", labels: { a: "b" } }, spec: service.spec });
  expect(found.service.metadata.namespace).toBeUndefined();
  expect(found.deployment).toBe(defaultServiceTemplates.deployment);
});

it("a deployment loses the sockets of the machine, with a warning", () => {
  const volumes = [
    { name: "docker", hostPath: { path: "/var/run/docker.sock" } },
    { name: "cache", emptyDir: {} },
  ];
  const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  const spec = { containers: [{ name: "main", volumeMounts: mounts }], volumes };
  const deployment = { kind: "Deployment", spec: { selector: { matchLabels: { app: "x" } }, template: { metadata: {}, spec } } };
  using tree = temporaryTree({ "deployment.yaml": deployment });
  const found = readServiceTemplates(tree.path);
  expect(found.deployment.spec.template.spec).toEqual({
    containers: [{ name: "main", volumeMounts: mounts.slice(1) }],
    volumes: volumes.slice(1),
  });
  expect(found.warnings).toEqual([expect.stringMatching(/'deployment'.*docker.sock of the machine is left out/)]);
});

it.each([
  [{ "deployment.yaml": "a: [" }, "is not YAML"],
  [{ "deployment.yaml": { kind: "Pod" } }, "is no Deployment"],
  [{ "deployment.yaml": { kind: "Deployment", spec: {} } }, "has no spec.selector.matchLabels"],
  [{ "deployment.yaml": { kind: "Deployment", spec: { selector: { matchLabels: { a: "" } } } } }, "has no spec.template.spec.containers"],
  [{ "service.yml": { kind: "Service", spec: { selector: { a: "" }, ports: [] } } }, "has no spec.ports"],
])("a template of services that cannot be used is refused with its file: %j", (files, message) => {
  using tree = temporaryTree(files);
  expect(() => readServiceTemplates(tree.path)).toThrow(message);
});
