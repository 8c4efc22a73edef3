import type { SandboxSpec } from "../../engine/engine.ts";
import { APPENDED, healthPathOf } from "../../spec/listening.ts";
import { INIT_PATH } from "../../spec/mounts.ts";
import {
  BASE_INIT,
  containerSecurity,
  fromField,
  initCommand,
  isGiven,
  mainOf,
  outsideVariables,
  podSecurity,
  resources,
  variables,
} from "./container.ts";
import { earlyCommand, POD_IP } from "./early-start.ts";
import { EGRESS_LABEL, HOME_LABEL, ID_ANNOTATION, labelsOf, podName, STATE_ANNOTATION, subjectMarks } from "./names.ts";
import { mebibytes } from "./quantity.ts";
import { secondContainer, secondOf } from "./second.ts";
import type { PodState } from "./state.ts";
import type { Container, Pod, Volume, VolumeMount } from "./types.ts";

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
  /** Class of a sandbox that does not run with the cluster's default; a template's own wins. */
  readonly runtimeClass?: string;
}

/** Above the ports that Linux gives to outgoing connections. */
export const INIT_PORT = 61_080;
/** Where programs listen that the engine tells it. */
export const PROGRAM_PORT = 8081;
/** Where folders are that the server adds, if that is a volume. */
export const BUNDLES = "/aenv/bundles";
/** Where a template may mount a volume that pods share, such as those of a node. Its content is checked before it is used. */
export const BUNDLE_CACHE = "/aenv/bundle-cache";
/** Where they are in the base image, which has a folder for everyone: a node takes some hundred milliseconds to mount a volume. */
const BASE_BUNDLES = "/tmp/aenv-bundles";

export const INIT_VOLUME = "aenv-init";
export const BUNDLES_VOLUME = "aenv-bundles";
/** A volume in memory counts as memory of the container that writes to it. */
const SHM_VOLUME = "aenv-shm";
const INIT_FOLDER = INIT_PATH.slice(0, INIT_PATH.lastIndexOf("/"));
/** Mount of a container whose image does not have the init. */
export const initMount: VolumeMount = { name: INIT_VOLUME, mountPath: INIT_FOLDER, readOnly: true };

/** The pod of a sandbox: what the template says, what the platform needs, and what the specification asks for. */
export function podOf(input: PodInput): Pod {
  const { homeId, spec, template, state } = input;
  const main = mainOf(template);
  const { shmMb } = spec.resources ?? {};
  const image = spec.image ?? input.baseImage;
  const labels = labelsOf(spec.labels);
  const subject = subjectMarks(spec.subject ?? {});
  const second = spec.second === undefined ? null : secondOf(template);
  const needsOwnCopy = state.hasInit && image !== input.baseImage;
  const needsCopy = needsOwnCopy || (second !== null && (spec.second?.image ?? input.baseImage) !== input.baseImage);
  const { containers, initContainers = [], volumes = [], ...rest } = template.spec;
  const hasVolume = state.bundles === BUNDLES;
  const ownVolumes: Volume[] = [
    ...(needsCopy ? [{ name: INIT_VOLUME, emptyDir: {} }] : []),
    ...(hasVolume ? [{ name: BUNDLES_VOLUME, emptyDir: {} }] : []),
    ...(shmMb !== undefined ? [{ name: SHM_VOLUME, emptyDir: { medium: "Memory", sizeLimit: mebibytes(shmMb) } }] : []),
  ];
  const ownMounts: VolumeMount[] = [
    ...(needsOwnCopy ? [initMount] : []),
    ...(hasVolume ? [{ name: BUNDLES_VOLUME, mountPath: BUNDLES }] : []),
    ...(shmMb !== undefined ? [{ name: SHM_VOLUME, mountPath: "/dev/shm" }] : []),
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
          : container === second
            ? secondContainer({ ...input, second: spec.second ?? {} }, container, [initMount])
            : {
                ...container,
                image: isGiven(container.image) ? container.image : image,
                securityContext: containerSecurity(container.securityContext),
              },
      ),
    },
  };
}

/** Where the server adds folders to a pod. */
export function bundlesIn(template: Pod, isBase: boolean): string {
  const isReadOnly = mainOf(template).securityContext?.readOnlyRootFilesystem === true;
  return isBase && !isReadOnly ? BASE_BUNDLES : BUNDLES;
}

/** Whether a volume of the template keeps folders for other pods. */
export function keepsBundles(template: Pod): boolean {
  return (mainOf(template).volumeMounts ?? []).some(({ mountPath }) => mountPath === BUNDLE_CACHE);
}

function mainContainer(
  { spec, state, initKey, baseImage }: PodInput,
  template: Container,
  image: string,
  mounts: readonly VolumeMount[],
): Container {
  const { livenessProbe, command, args = [], ...rest } = template;
  const allArgs = [...args, ...(spec.arguments ?? [])];
  const listening = spec.listening ?? APPENDED;
  const init = initCommand(image === baseImage, INIT_PORT, initKey);
  const probe = { httpGet: { path: healthPathOf(listening), port: state.port }, periodSeconds: 10, timeoutSeconds: 5 };
  return {
    ...rest,
    image,
    // With an init, variables are sent to it and are in no object of the cluster: they may be secrets.
    env: [
      ...variables(
        [...(listening.kind === "port" && !state.hasInit ? outsideVariables : []), ...(template.env ?? [])],
        state.hasInit && !state.startsEarly ? {} : spec.variables,
      ),
      ...(state.startsEarly ? [fromField(POD_IP, "status.podIP")] : []),
    ],
    ...(state.hasInit
      ? { command: state.startsEarly ? [...init, "--", ...earlyCommand(spec, PROGRAM_PORT)] : init }
      : { ...(command !== undefined && { command }), ...(allArgs.length > 0 && { args: allArgs }) }),
    resources: resources(template, spec.resources),
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
export function copyContainer(baseImage: string, main: Container): Container {
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
