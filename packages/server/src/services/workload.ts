import { type CreateServiceRequest, type EgressPolicy, PlatformError, programPort } from "@aenv/contract";
import type { SandboxEngine, ServiceEngine, ServiceSpec } from "@aenv/sandbox";
import { isImageReference } from "../hub/datasource.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import { egressFor } from "../instances/egress.ts";
import type { RuntimePolicy } from "../slots/runtimes.ts";
import { mergeVariables } from "../slots/variables.ts";
import type { ServiceRow, Workload } from "./row.ts";

/** Where environment servers listen, unless their config says otherwise. */
const DEFAULT_PORT = 8081;
/** The path at which the original mounts storage. */
const MOUNT_PATH = "/home/admin/data";

export type WorkloadRequest = Pick<
  CreateServiceRequest,
  | "port"
  | "mount_path"
  | "storage_size"
  | "cpu_request"
  | "cpu_limit"
  | "memory_request"
  | "memory_limit"
  | "ephemeral_storage_request"
  | "ephemeral_storage_limit"
>;

/**
 * How the engine runs a service by itself; null if the platform has to start every replica, because the program needs something that only
 * the platform can give it.
 */
export function workloadFor(
  environment: EnvironmentVersion,
  request: WorkloadRequest,
  { location, baseImage }: Pick<ServiceEngine, "location" | "baseImage">,
): Workload | null {
  const { config, bundleDigest, artifacts, name, version } = environment;
  const { runtime, deployConfig: { secrets = {}, taskSandboxes, service, port } = {} } = config;
  const image = artifacts.find(({ type }) => type === "image")?.content;
  if (Object.keys(secrets).length > 0 || taskSandboxes !== undefined) return null;
  // The image of a command has its interpreter, and the bundle has its files. Another image has the whole program.
  const isBundle = bundleDigest !== null && (runtime !== undefined || image === undefined);
  if (image === undefined && !isBundle) return null;
  if (image !== undefined && !isImageReference(image))
    throw new PlatformError(
      "instance.unsupported",
      `${name}@${version} names the image '${image}', which is not a name in a registry, such as host/team/name:tag`,
    );
  const own = runtime === undefined ? (service?.port ?? port) : programPort(runtime).port;
  return {
    location,
    image: image ?? baseImage,
    ...(isBundle && { baseImage }),
    port: request.port || own || DEFAULT_PORT,
    storageSize: request.storage_size ?? "",
    mountPath: request.mount_path || MOUNT_PATH,
    requests: { cpu: request.cpu_request, memory: request.memory_request, ephemeralStorage: request.ephemeral_storage_request },
    limits: { cpu: request.cpu_limit, memory: request.memory_limit, ephemeralStorage: request.ephemeral_storage_limit },
    status: null,
  };
}

export interface SpecOptions {
  readonly engine: Pick<SandboxEngine, "name" | "can" | "egress">;
  readonly egressLimit: EgressPolicy;
  readonly runtimes: RuntimePolicy;
  /** The unpacked bundle. */
  readonly bundleFolder: (digest: string) => Promise<string>;
}

/** The program of a bundle that is no command, as `aenv build --image` has it too. */
const MODULE = ["/opt/aenv/node", "main.js", "--host", "{host}", "--port", "{port}"];

/** What the engine has to run. */
export function specOf(
  row: ServiceRow,
  { image, baseImage, port, mountPath, storageSize, requests, limits }: Workload,
  environment: EnvironmentVersion,
  { engine, egressLimit, runtimes, bundleFolder }: SpecOptions,
): ServiceSpec {
  const { config, bundleDigest } = environment;
  const { runtime, deployConfig } = config;
  const runtimeOf = () => runtimes.runtimeOf([environment.owner, row.owner], deployConfig?.runtime);
  const { egress } = egressFor(environment, {}, { limit: egressLimit, engine, isShared: false, runtime: runtimeOf });
  const platform = { AENV_TYPE: "service", ...(row.storage !== null && { AENV_STORAGE: mountPath }) };
  return {
    id: row.id,
    owner: row.owner,
    environment: row.environment,
    replicas: row.replicas,
    image,
    command: commandOf(config) ?? (baseImage === undefined ? [] : MODULE),
    ...(baseImage !== undefined &&
      bundleDigest !== null && {
        bundle: {
          name: `bundle-${bundleDigest.replace(/^sha256:/, "").slice(0, 32)}`,
          open: () => bundleFolder(bundleDigest),
          cwd: runtime?.cwd ?? ".",
          baseImage,
        },
      }),
    port,
    // A bundle without a command, and an image of it, is an environment of the kit, which answers there.
    healthPath:
      runtime === undefined ? (deployConfig?.healthPath ?? (bundleDigest === null ? null : "/health")) : (runtime.healthPath ?? null),
    variables: mergeVariables(ownVariables(environment), row.variables, platform),
    egress: egress?.agent,
    runtime: runtimeOf(),
    storage: row.storage === null ? null : { name: row.storage, size: storageSize, mountPath },
    requests,
    limits,
  };
}

function commandOf({ runtime, deployConfig }: EnvironmentVersion["config"]): readonly string[] | null {
  return runtime === undefined ? null : [...runtime.command, ...(deployConfig?.arguments ?? [])];
}
