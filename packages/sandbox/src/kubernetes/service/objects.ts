import { posix } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { ServiceBundle, ServiceResources, ServiceSpec } from "../../engine/service.ts";
import { tellAddress } from "../../spec/listening.ts";
import { containerSecurity, initCommand, isGiven, outsideVariables, podSecurity, texts } from "../pod/container.ts";
import { MAIN } from "../pod/default-templates.ts";
import { literal } from "../pod/early-start.ts";
import { EGRESS_LABEL, isLabelValue } from "../pod/names.ts";
import { BUNDLES, BUNDLES_VOLUME, copyContainer, INIT_PORT, INIT_VOLUME, initMount } from "../pod/pod.ts";
import { quantityValue, smaller } from "../pod/quantity.ts";
import type { Container, EnvVar, PodSpec, Volume } from "../pod/types.ts";
import type { ServiceTemplates } from "./templates.ts";
import type { Claim, Deployment, Service, ServiceObjects } from "./types.ts";

/** On every object of a service, and on its pods: whose it is, and which service. */
export const HOME_LABEL = "aenv.io/services-of";
export const SERVICE_LABEL = "aenv.io/service";
/** Whose data is in a claim. An operator gives an own claim to everybody with `*`. */
export const OWNER_ANNOTATION = "aenv.io/owner";

export interface ServiceInput {
  readonly homeId: string;
  readonly spec: ServiceSpec;
  readonly templates: ServiceTemplates;
  readonly egress: "none" | "open";
  /** What the inits of replicas with a bundle accept connections with. */
  readonly initKey: string;
  /** A template's own wins. */
  readonly runtimeClass?: string | undefined;
}

/** How the original probes the containers of services. */
const LIVENESS = { initialDelaySeconds: 3, periodSeconds: 10, failureThreshold: 30, timeoutSeconds: 60 };
const READINESS = { periodSeconds: 2, timeoutSeconds: 5 };
/** A replica that waits for its bundle is not alive, and starting it again would not help: an hour, until a server sends it. */
const STARTUP = { periodSeconds: 1, failureThreshold: 3_600, timeoutSeconds: 5 };

/** The objects of a service: what the templates say, what the platform needs, and what the specification asks for. */
export function objectsOf(input: ServiceInput): ServiceObjects {
  return { deployment: deploymentOf(input), service: serviceOf(input), claim: claimOf(input) };
}

function deploymentOf(input: ServiceInput): Deployment {
  const { spec, templates, egress } = input;
  const { metadata, spec: template } = templates.deployment;
  const selector = valuesAs(template.selector.matchLabels, spec.id);
  const marks = marksOf(input);
  const { labels, annotations } = template.template.metadata;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...metadata, name: spec.id, labels: { ...metadata.labels, ...marks } },
    spec: {
      // Two pods cannot have one volume, if they are on different nodes.
      ...(spec.storage !== null && { strategy: { type: "Recreate" } }),
      ...template,
      replicas: spec.replicas,
      selector: { ...template.selector, matchLabels: selector },
      template: {
        metadata: {
          ...(annotations !== undefined && { annotations }),
          labels: { ...labels, ...marks, ...selector, [EGRESS_LABEL]: egress },
        },
        spec: podSpecOf(input),
      },
    },
  };
}

function podSpecOf(input: ServiceInput): PodSpec {
  const { spec, templates, runtimeClass } = input;
  const { containers, initContainers = [], volumes = [], ...rest } = templates.deployment.spec.template.spec;
  const main = containers.find(({ name }) => name === MAIN) ?? (containers[0] as Container);
  const lost = new Set(spec.storage === null ? volumes.filter(isClaim).map(({ name }) => name) : []);
  const kept = volumes.filter(({ name }) => !lost.has(name)).map((volume) => withClaim(volume, spec.storage?.name ?? ""));
  const strict = (container: Container): Container => ({
    ...withMounts(container, spec, lost, new Set(kept.filter(isClaim).map(({ name }) => name))),
    securityContext: containerSecurity(container.securityContext),
  });
  // As in the original, all containers have the image; those of a template that name their own keep it.
  const other = (container: Container) => ({ ...strict(container), image: isGiven(container.image) ? container.image : spec.image });
  const needsCopy = spec.bundle !== undefined && spec.image !== spec.bundle.baseImage;
  const copies = needsCopy ? [copyContainer(spec.bundle.baseImage, main)] : [];
  const own =
    spec.bundle === undefined ? [] : [{ name: BUNDLES_VOLUME, emptyDir: {} }, ...copies.map(() => ({ name: INIT_VOLUME, emptyDir: {} }))];
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 5,
    ...(runtimeClass !== undefined && { runtimeClassName: runtimeClass }),
    ...rest,
    securityContext: podSecurity(rest.securityContext),
    ...(kept.length + own.length > 0 && { volumes: [...kept, ...own] }),
    ...(initContainers.length + copies.length > 0 && { initContainers: [...copies, ...initContainers.map(other)] }),
    containers: containers.map((container) => (container === main ? mainContainer(strict(container), input) : other(container))),
  };
}

function mainContainer(container: Container, { spec, initKey }: ServiceInput): Container {
  const { port, healthPath, bundle } = spec;
  const told = tellAddress(spec, { host: "0.0.0.0", port });
  const check = healthPath === null ? { tcpSocket: { port } } : { httpGet: { path: healthPath, port } };
  return {
    ...container,
    image: spec.image,
    ...(bundle === undefined
      ? told.command.length > 0 && { command: told.command.map(literal) }
      : {
          command: bundleCommand(spec, bundle, initKey, told.command),
          volumeMounts: [
            ...(container.volumeMounts ?? []),
            { name: BUNDLES_VOLUME, mountPath: BUNDLES },
            ...(spec.image === bundle.baseImage ? [] : [initMount]),
          ],
          startupProbe: container.startupProbe ?? { ...check, ...STARTUP },
        }),
    env: variables([...outsideVariables, ...(container.env ?? [])], { PORT: String(port), ...told.variables }),
    resources: resourcesOf(container, spec),
    ports: [...(container.ports ?? []).filter(({ containerPort }) => containerPort !== port), { containerPort: port }],
    readinessProbe: container.readinessProbe ?? { ...check, ...READINESS },
    livenessProbe: container.livenessProbe ?? { ...check, ...LIVENESS },
  };
}

/** The init starts the program when a server has sent its files; a container that is started again still has them. */
function bundleCommand(
  { image }: ServiceSpec,
  { name, cwd, baseImage }: ServiceBundle,
  initKey: string,
  command: readonly string[],
): string[] {
  const folder = posix.join(BUNDLES, name);
  const init = initCommand(image === baseImage, INIT_PORT, initKey);
  return [...init, "--await", folder, "--cwd", posix.join(folder, cwd), "--", ...command.map(literal)];
}

function serviceOf(input: ServiceInput): Service {
  const { spec, templates } = input;
  const { metadata, spec: template } = templates.service;
  const [first = {}, ...others] = template.ports;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadata, name: spec.id, labels: { ...metadata.labels, ...marksOf(input) } },
    spec: {
      ...template,
      selector: valuesAs(template.selector, spec.id),
      ports: [{ ...first, port: spec.port, targetPort: spec.port }, ...others],
    },
  };
}

function claimOf(input: ServiceInput): Claim | null {
  const { spec, templates } = input;
  if (spec.storage === null) return null;
  const { metadata, spec: template } = templates.pvc;
  // Several services of an owner may share it, so it is marked with none of them.
  const { [SERVICE_LABEL]: _, ...marks } = marksOf(input);
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      ...metadata,
      name: spec.storage.name,
      labels: { ...metadata.labels, ...marks },
      annotations: { ...metadata.annotations, [OWNER_ANNOTATION]: spec.owner },
    },
    spec: { ...template, resources: { ...template.resources, requests: { ...template.resources?.requests, storage: spec.storage.size } } },
  };
}

/** The labels of the original as far as they are valid, and those by which the platform finds its objects. */
function marksOf({ homeId, spec }: ServiceInput): Record<string, string> {
  const { name, version } = spec.environment;
  const original = { "business/aenv-name": name, "business/aenv-version": version, "business/aenv-owner": spec.owner };
  const valid = Object.entries(original).filter(([, value]) => value !== "" && isLabelValue(value));
  return { ...Object.fromEntries(valid), [HOME_LABEL]: homeId, [SERVICE_LABEL]: spec.id };
}

function valuesAs(labels: Readonly<Record<string, string>>, value: string): Record<string, string> {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, value]));
}

function isClaim(volume: Volume): boolean {
  return volume.persistentVolumeClaim !== undefined;
}

function withClaim(volume: Volume, claimName: string): Volume {
  return isClaim(volume) ? { ...volume, persistentVolumeClaim: { ...(volume.persistentVolumeClaim as object), claimName } } : volume;
}

/** Without the mounts of volumes that are left out; the storage is mounted where the service wants it. */
function withMounts(container: Container, { storage }: ServiceSpec, lost: ReadonlySet<string>, claims: ReadonlySet<string>): Container {
  const { volumeMounts = [], ...rest } = container;
  const kept = volumeMounts
    .filter(({ name }) => !lost.has(name))
    .map((mount) => (storage?.mountPath && claims.has(mount.name) ? { ...mount, mountPath: storage.mountPath } : mount));
  return kept.length === 0 ? rest : { ...rest, volumeMounts: kept };
}

/** Each name once; the service's win over the template's. */
function variables(template: readonly EnvVar[], own: Readonly<Record<string, string>>): EnvVar[] {
  const all = new Map<string, EnvVar>(template.map((variable) => [variable.name, variable]));
  for (const [name, value] of Object.entries(own)) all.set(name, { name, value });
  return [...all.values()];
}

/** Those of the service over those of the template. A request is never above its limit. */
function resourcesOf({ resources = {} }: Container, { requests, limits }: ServiceSpec): NonNullable<Container["resources"]> {
  const upper = { ...texts(resources.limits ?? {}), ...quantities(limits, "limit") };
  const lower = Object.entries({ ...texts(resources.requests ?? {}), ...quantities(requests, "request") }).map(([name, value]) => {
    const limit = upper[name];
    return [name, limit === undefined ? value : smaller(value, limit, `the request of ${name}`)];
  });
  return { limits: upper, requests: Object.fromEntries(lower) as Record<string, string> };
}

function quantities({ cpu, memory, ephemeralStorage }: ServiceResources, kind: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, given] of Object.entries({ cpu, memory, "ephemeral-storage": ephemeralStorage })) {
    if (given === undefined || given === "") continue;
    // The original's samples write processors as `1C`.
    const value = name === "cpu" ? given.replace(/[cC]$/, "") : given;
    if (!(quantityValue(value, `the ${kind} of ${name}`) > 0))
      throw new PlatformError("request.invalid", `the ${kind} of ${name} is '${given}'; it must be more than nothing`);
    found[name] = value;
  }
  return found;
}
