import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { parse } from "yaml";
import { MAIN } from "../pod/default-templates.ts";
import { withoutSockets } from "../pod/sockets.ts";
import { socketWarning } from "../pod/templates.ts";
import type { Fields } from "../pod/types.ts";
import type { Claim, Deployment, Service } from "./types.ts";

/** What the objects of services are made from. */
export interface ServiceTemplates {
  readonly deployment: Deployment;
  readonly service: Service;
  readonly pvc: Claim;
  /** What was left out, and why. */
  readonly warnings: readonly string[];
}

/** The volume of a deployment with the storage of its service. */
export const DATA = "data";

const labels = (type: string) => ({ "app.kubernetes.io/name": "aenv-service", "template-type": type });

/** Those of an installation without its own, by the names of the original. */
export const defaultServiceTemplates: ServiceTemplates = {
  deployment: {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "placeholder", labels: labels("deployment") },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: "placeholder" } },
      template: {
        metadata: { labels: { app: "placeholder" } },
        spec: {
          containers: [
            {
              name: MAIN,
              imagePullPolicy: "IfNotPresent",
              resources: {
                limits: { cpu: "2", memory: "4Gi", "ephemeral-storage": "10Gi" },
                requests: { cpu: "50m", memory: "128Mi", "ephemeral-storage": "128Mi" },
              },
              env: [{ name: "AENV_TYPE", value: "service" }],
              volumeMounts: [{ name: DATA, mountPath: "/home/admin/data" }],
            },
          ],
          volumes: [{ name: DATA, persistentVolumeClaim: { claimName: "placeholder-pvc" } }],
        },
      },
    },
  },
  service: {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "placeholder", labels: labels("service") },
    spec: { type: "ClusterIP", selector: { app: "placeholder" }, ports: [{ name: "http", port: 8080, targetPort: 8080, protocol: "TCP" }] },
  },
  pvc: {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "placeholder-pvc", labels: labels("pvc") },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "10Gi" } } },
  },
  warnings: [],
};

/** The templates of a folder: `deployment.yaml`, `service.yaml` and `pvc.yaml`. Those of the platform stand in for the files that it lacks. */
export function readServiceTemplates(folder: string | null): ServiceTemplates {
  const deployment = read(folder, "deployment", "Deployment", defaultServiceTemplates.deployment, checkDeployment);
  const { template } = deployment.spec;
  const { spec, removed } = withoutSockets(template.spec);
  return {
    deployment: removed.length === 0 ? deployment : { ...deployment, spec: { ...deployment.spec, template: { ...template, spec } } },
    warnings: removed.map((path) => socketWarning("deployment", path)),
    service: read(folder, "service", "Service", defaultServiceTemplates.service, checkService),
    pvc: read(folder, "pvc", "PersistentVolumeClaim", defaultServiceTemplates.pvc, () => null),
  };
}

function read<T>(folder: string | null, name: string, kind: string, fallback: T, problemOf: (spec: Fields) => string | null): T {
  const path =
    folder === null ? undefined : [`${name}.yaml`, `${name}.yml`].map((file) => join(folder, file)).find((file) => existsSync(file));
  if (path === undefined) return fallback;
  const invalid = (why: string) => new PlatformError("request.invalid", `the template ${path} ${why}`);
  let value: unknown;
  try {
    value = parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw invalid(`is not YAML: ${(cause as Error).message}`);
  }
  if (!isFields(value) || value.kind !== kind) throw invalid(`is no ${kind}`);
  const spec = isFields(value.spec) ? value.spec : {};
  const problem = problemOf(spec);
  if (problem !== null) throw invalid(problem);
  const { labels: own, annotations } = isFields(value.metadata) ? value.metadata : {};
  const metadata = { name: "placeholder", ...(isFields(own) && { labels: own }), ...(isFields(annotations) && { annotations }) };
  return { ...value, metadata, spec } as T;
}

function checkDeployment({ selector, template }: Fields): string | null {
  if (!isFields(selector) || !isFields(selector.matchLabels) || Object.keys(selector.matchLabels).length === 0)
    return "has no spec.selector.matchLabels";
  const spec = isFields(template) ? template.spec : undefined;
  const containers = isFields(spec) ? spec.containers : undefined;
  return Array.isArray(containers) && containers.length > 0 ? null : "has no spec.template.spec.containers";
}

function checkService({ selector, ports }: Fields): string | null {
  if (!isFields(selector) || Object.keys(selector).length === 0) return "has no spec.selector";
  return Array.isArray(ports) && ports.length > 0 ? null : "has no spec.ports";
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
