import { PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../../engine.ts";
import { healthPathOf } from "../../listening.ts";
import { INIT_PATH } from "../../oci/spec/mounts.ts";
import { MAIN } from "./default-templates.ts";
import { earlyCommand, POD_IP } from "./early-start.ts";
import { EGRESS_LABEL, HOME_LABEL, ID_ANNOTATION, labelsOf, podName, STATE_ANNOTATION, subjectMarks } from "./names.ts";
import { cpuQuantity, mebibytes, quantityValue, smaller } from "./quantity.ts";
import type { PodState } from "./state.ts";
import type { Container, EnvVar, Fields, Pod, Quantities, Volume, VolumeMount } from "./types.ts";

export interface PodInput {
  readonly homeId: string;
  readonly spec: SandboxSpec;
  readonly template: Pod;
  /** The image with the init and the runner. */
  readonly baseImage: string;
  readonly state: PodState;
  /** What the init accepts connections with. */
  readonly initKey: string;
  readonly egress: "none" | "open";
  /** Of a sandbox that does not run with the cluster's default; a template's own wins. */
  readonly runtimeClass?: string;
}

/** Where the base image has the init. */
export const BASE_INIT = "/opt/aenv/init";
/** Above the ports that Linux gives to outgoing connections. */
export const INIT_PORT = 61_080;
/** Where programs listen that the engine tells it. */
export const PROGRAM_PORT = 8081;
/** Where folders are that the server adds. A template may mount a volume of its own there. */
export const BUNDLES = "/aenv/bundles";

const INIT_VOLUME = "aenv-init";
const BUNDLES_VOLUME = "aenv-bundles";
const INIT_FOLDER = INIT_PATH.slice(0, INIT_PATH.lastIndexOf("/"));
/** Any user but root, as the restricted Pod Security Standard demands. */
const USER = 1000;

/** The pod of a sandbox: what the template says, what the platform needs, and what the specification asks for. */
export function podOf(input: PodInput): Pod {
  const { homeId, spec, template, state } = input;
  const main = mainOf(template);
  const image = spec.image ?? input.baseImage;
  const labels = labelsOf(spec.labels);
  const subject = subjectMarks(spec.subject ?? {});
  const needsCopy = state.hasInit && image !== input.baseImage;
  const { containers, initContainers = [], volumes = [], ...rest } = template.spec;
  const hasBundles = (main.volumeMounts ?? []).some(({ mountPath }) => mountPath === BUNDLES);
  const ownVolumes: Volume[] = [
    ...(needsCopy ? [{ name: INIT_VOLUME, emptyDir: {} }] : []),
    ...(hasBundles || !state.hasInit ? [] : [{ name: BUNDLES_VOLUME, emptyDir: {} }]),
  ];
  const ownMounts: VolumeMount[] = [
    ...(needsCopy ? [{ name: INIT_VOLUME, mountPath: INIT_FOLDER, readOnly: true }] : []),
    ...(hasBundles || !state.hasInit ? [] : [{ name: BUNDLES_VOLUME, mountPath: BUNDLES }]),
  ];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: podName(homeId, spec.id, spec.subject?.environment),
      labels: { ...template.metadata.labels, ...subject.labels, ...labels.labels, [HOME_LABEL]: homeId, [EGRESS_LABEL]: input.egress },
      annotations: {
        ...template.metadata.annotations,
        ...subject.annotations,
        ...labels.annotations,
        [ID_ANNOTATION]: spec.id,
        [STATE_ANNOTATION]: JSON.stringify(state),
      },
    },
    spec: {
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 5,
      ...(input.runtimeClass !== undefined && { runtimeClassName: input.runtimeClass }),
      ...rest,
      // The platform decides when a sandbox is replaced.
      ...(rest.restartPolicy !== undefined && { restartPolicy: "Never" }),
      securityContext: podSecurity(rest.securityContext),
      ...(volumes.length + ownVolumes.length > 0 && { volumes: [...volumes, ...ownVolumes] }),
      ...(initContainers.length + (needsCopy ? 1 : 0) > 0 && {
        initContainers: [
          ...(needsCopy ? [copyContainer(input.baseImage, main)] : []),
          ...initContainers.map((one) => ({
            ...one,
            image: isGiven(one.image) ? one.image : image,
            securityContext: containerSecurity(one.securityContext),
          })),
        ],
      }),
      containers: containers.map((container) =>
        container === main
          ? mainContainer(input, container, image, ownMounts)
          : {
              ...container,
              image: isGiven(container.image) ? container.image : image,
              securityContext: containerSecurity(container.securityContext),
            },
      ),
    },
  };
}

/** The command that a template gives to its main container; empty if it leaves that to the image. */
export function templateCommand(template: Pod): readonly string[] {
  const { command = [], args = [] } = mainOf(template);
  // Arguments alone are those of the image's own program, which only the node knows.
  return command.length === 0 ? [] : [...command, ...args];
}

function mainOf(template: Pod): Container {
  const { containers } = template.spec;
  const main = containers.find(({ name }) => name === MAIN) ?? containers[0];
  if (main === undefined) throw new PlatformError("request.invalid", "the pod template has no container");
  return main;
}

function mainContainer(
  { spec, state, initKey, baseImage }: PodInput,
  template: Container,
  image: string,
  mounts: readonly VolumeMount[],
): Container {
  const { livenessProbe, command, args, ...rest } = template;
  const listening = spec.listening ?? { kind: "appended" };
  const init = [image === baseImage ? BASE_INIT : INIT_PATH, "--listen", `tcp::${INIT_PORT}`, "--key", initKey];
  const probe = { httpGet: { path: healthPathOf(listening), port: state.port }, periodSeconds: 10, timeoutSeconds: 5 };
  return {
    ...rest,
    image,
    // With an init, variables are sent to it and are in no object of the cluster: they may be secrets.
    env: [
      ...variables(template.env ?? [], state.hasInit && !state.startsEarly ? {} : spec.variables),
      ...(state.startsEarly ? [fromField(POD_IP, "status.podIP")] : []),
    ],
    ...(state.hasInit
      ? { command: state.startsEarly ? [...init, "--", ...earlyCommand(spec, PROGRAM_PORT)] : init }
      : { ...(command !== undefined && { command }), ...(args !== undefined && { args }) }),
    resources: resources(template, spec),
    ...(state.port !== null && {
      ports: [...(rest.ports ?? []).filter(({ containerPort }) => containerPort !== state.port), { containerPort: state.port }],
      readinessProbe: rest.readinessProbe ?? probe,
    }),
    // A blank runner answers 503 until it is given an environment: a probe that ends the pod would end it.
    ...(livenessProbe !== undefined && listening.kind === "port" && { livenessProbe }),
    ...(mounts.length > 0 && { volumeMounts: [...(rest.volumeMounts ?? []), ...mounts] }),
    securityContext: containerSecurity(rest.securityContext),
  };
}

/** Copies the init out of the base image, for images that do not have it. */
function copyContainer(baseImage: string, main: Container): Container {
  return {
    name: INIT_VOLUME,
    image: baseImage,
    ...(main.imagePullPolicy !== undefined && { imagePullPolicy: main.imagePullPolicy }),
    command: [BASE_INIT, "--copy-to", INIT_PATH],
    resources: { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "10m", memory: "16Mi" } },
    volumeMounts: [{ name: INIT_VOLUME, mountPath: INIT_FOLDER }],
    securityContext: containerSecurity(undefined),
  };
}

/** Each name once. The sandbox's win over the template's, and a later one of the template over an earlier one. */
function variables(template: readonly EnvVar[], own: Readonly<Record<string, string>>): EnvVar[] {
  const all = new Map<string, EnvVar>([
    ["POD_NAME", fromField("POD_NAME", "metadata.name")],
    ["POD_NAMESPACE", fromField("POD_NAMESPACE", "metadata.namespace")],
  ]);
  for (const variable of template) all.set(variable.name, variable);
  for (const [name, value] of Object.entries(own)) all.set(name, { name, value });
  return [...all.values()];
}

function fromField(name: string, fieldPath: string): EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** The limits of the specification, else those of the template. The template's requests stay, as far as the limits allow. */
function resources(
  { resources: { limits = {}, requests = {} } = {} }: Container,
  { memoryMb, cpus, diskMb }: SandboxSpec,
): NonNullable<Container["resources"]> {
  const all: Record<string, string> = {
    ...texts(limits),
    ...(cpus !== undefined && { cpu: cpuQuantity(cpus) }),
    ...(memoryMb !== undefined && { memory: mebibytes(memoryMb) }),
    ...(diskMb !== undefined && { "ephemeral-storage": mebibytes(diskMb) }),
  };
  for (const [name, value] of Object.entries(all)) {
    if (!(quantityValue(value, `the limit of ${name}`) > 0))
      throw new PlatformError("request.invalid", `the limit of ${name} is '${value}'; it must be more than nothing`);
  }
  const asked = Object.entries(texts(requests)).map(([name, value]) => {
    const limit = all[name];
    return [name, limit === undefined ? value : smaller(value, limit, `the request of ${name}`)];
  });
  return { limits: all, requests: Object.fromEntries(asked) as Quantities };
}

/** YAML reads `cpu: 2` as a number. */
export function texts(quantities: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, String(value)]));
}

/** What the restricted Pod Security Standard demands, unless the template says otherwise. */
export function podSecurity(template: Fields = {}): Fields {
  const user = template.runAsUser ?? USER;
  return {
    runAsNonRoot: user !== 0,
    runAsUser: user,
    runAsGroup: user,
    fsGroup: user,
    seccompProfile: { type: "RuntimeDefault" },
    ...template,
  };
}

export function containerSecurity(template: Fields = {}): Fields {
  return { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, ...template };
}

/** Templates of the original name an image that the platform replaces. */
export function isGiven(image: string | undefined): image is string {
  return image !== undefined && image !== "" && image !== "placeholder";
}
