import { isDeepStrictEqual } from "node:util";
import {
  assertShmFits,
  beyondEgress,
  type CapabilitySet,
  type EgressPolicy,
  type EnvironmentConfig,
  isDualContainer,
  type Limit,
  type LinkParameters,
  limitFields,
  limitPath,
  narrowEgress,
  PlatformError,
  pickResources,
  type Resources,
  readLimits,
} from "@aenv/contract";
import {
  capabilitiesRefused,
  type HostEntry,
  type MemoryFolder,
  type SandboxEngine,
  type SandboxRuntime,
  type SecondContainer,
} from "@aenv/sandbox";
import { isImageReference } from "../hub/datasource.ts";
import { assertPossibleEgress } from "../sandboxes/possible-egress.ts";
import { globMatches } from "./glob.ts";

/** Limits of the server for sandboxes that environment code opens. */
export interface TaskSandboxLimits {
  /** Sandboxes of one instance at a time, in all its episodes. */
  readonly perInstance: number;
  /** Sandboxes of one owner at a time, on this server. */
  readonly perOwner: number;
  /** Memory of all sandboxes on this server; null if it is not limited. */
  readonly totalMemoryMb: number | null;
  /** Most memory of one sandbox. */
  readonly memoryMb: number;
  /** Memory of one whose environment names none. */
  readonly defaultMemoryMb: number;
}

/** What the code of one instance may open. It is stored in the instance's row. */
export interface TaskSandboxPolicy extends Resources {
  /** The instance has a second container. */
  readonly hasSecond: boolean;
  /** The image of the second container, and of sandboxes for which the code names none; null for the engine's own files. */
  readonly image: string | null;
  readonly images: readonly string[];
  readonly atOnce: number;
  readonly memoryMb: number;
  /** Absent: `minimal`. */
  readonly capabilities?: CapabilitySet;
  /** Undefined on engines that do not restrict connections. */
  readonly egress?: EgressPolicy;
  /** The egress of fresh sandboxes, in which rewards are computed, if it differs. */
  readonly rewardEgress?: EgressPolicy;
  readonly runtime?: SandboxRuntime;
  /** The second container and the instance's own sandbox share a folder of this machine. */
  readonly hasSharedFolder: boolean;
  /** The first second container is in the instance's own sandbox, where they share a folder. After a reset, it is a sandbox of its own. */
  readonly isSecondInside?: boolean;
}

export interface PolicyInput {
  readonly ref: string;
  readonly config: EnvironmentConfig;
  /** The image of the request's `datasource`. */
  readonly image: string | null;
  readonly isShared: boolean;
  /** The policies of the instance; undefined on engines that do not restrict connections. */
  readonly egress: { readonly agent: EgressPolicy; readonly reward?: EgressPolicy } | undefined;
  /** The request has narrowed `egress`. */
  readonly isNarrowed: boolean;
  readonly egressLimit: EgressPolicy;
  readonly engine: Pick<SandboxEngine, "name" | "can" | "egress">;
  readonly limits: TaskSandboxLimits;
  readonly runtime: () => SandboxRuntime | undefined;
}

export interface ChosenPolicy {
  /** Undefined if the environment declares no sandboxes. */
  readonly policy: TaskSandboxPolicy | undefined;
  readonly warnings: readonly string[];
}

/** What an instance's code may open, from its environment's config.json. An environment that cannot run here is an error. */
export function taskPolicyFor(input: PolicyInput): ChosenPolicy {
  const { config, ref, isShared, limits, engine } = input;
  const deploy = config.deployConfig ?? {};
  const declared = deploy.taskSandboxes;
  const hasSecond = isDualContainer(deploy);
  if (!hasSecond && declared === undefined) return { policy: undefined, warnings: [] };
  if (hasSecond && !engine.can.images) throw noImages(engine, `${ref} has a second container (deployConfig.podTemplate)`);
  const image = input.image ?? (deploy.secondImageName || null);
  if (image !== null && !isImageReference(image))
    throw new PlatformError("environment.invalid", `deployConfig.secondImageName of ${ref} is '${image}', which is not an image name`);
  const resources = { memoryMb: limits.defaultMemoryMb, ...readLimits(ref, "taskSandboxes", declared) };
  if (resources.memoryMb > limits.memoryMb)
    throw new PlatformError(
      "instance.unsupported",
      `deployConfig.taskSandboxes.memory of ${ref} is ${resources.memoryMb} MiB, and this server allows ${limits.memoryMb} (its setting taskMemoryMb)`,
    );
  assertShmFits(ref, "taskSandboxes", resources);
  const hasSharedFolder = hasSecond && !isShared && engine.can.folders;
  const connections = egressFor(input);
  const isSameNetwork = isDeepStrictEqual(connections.egress, input.egress?.agent);
  const isSecondInside = hasSecond && !isShared && engine.can.seconds && isSameNetwork;
  const runtime = input.runtime();
  return {
    policy: {
      hasSecond,
      image,
      images: declared?.images ?? [],
      atOnce: Math.min(declared?.atOnce ?? DEFAULT_AT_ONCE, limits.perInstance),
      ...resources,
      ...(declared?.capabilities !== undefined && { capabilities: declared.capabilities }),
      ...connections,
      ...(runtime !== undefined && { runtime }),
      hasSharedFolder,
      ...(isSecondInside && { isSecondInside }),
    },
    warnings: hasSecond && !hasSharedFolder ? [unsharedWarning(input, { isSecondInside, isSameNetwork })] : [],
  };
}

function unsharedWarning(
  { isShared, engine }: PolicyInput,
  { isSecondInside, isSameNetwork }: { readonly isSecondInside: boolean; readonly isSameNetwork: boolean },
): string {
  if (isSecondInside)
    return "after a reset, the second container is a sandbox of its own, and shares no folder /shared with the environment; create a new instance instead";
  const why = isShared
    ? "instances that share a process have no sandbox of their own"
    : engine.can.seconds && !isSameNetwork
      ? "deployConfig.taskSandboxes.egress differs from deployConfig.egress, so they are not in one sandbox"
      : `sandboxes of the engine '${engine.name}' have no folders of the server's machine`;
  return `the second container and the environment share no folder /shared: ${why}`;
}

/** The second container of an instance's own sandbox. */
export function secondOf(policy: TaskSandboxPolicy | undefined): SecondContainer | undefined {
  if (policy?.isSecondInside !== true) return undefined;
  return { resources: pickResources(policy), ...(policy.image !== null && { image: policy.image }) };
}

const DEFAULT_AT_ONCE = 4;

function egressFor(input: PolicyInput): Pick<TaskSandboxPolicy, "egress" | "rewardEgress"> {
  const { ref, config, egress, isNarrowed, egressLimit } = input;
  if (egress === undefined) return {};
  const { taskSandboxes, rewardEgress } = config.deployConfig ?? {};
  // A request that narrows the policy of the environment narrows those of its sandboxes, also of fresh ones.
  const within = (policy: EgressPolicy) => (isNarrowed ? narrowEgress(policy, egress.agent) : policy);
  const chosen = within(taskSandboxes?.egress ?? egress.agent);
  const beyond = beyondEgress(chosen, egressLimit);
  if (beyond !== null)
    throw new PlatformError(
      "instance.unsupported",
      `${ref} wants connections to '${beyond}' (deployConfig.taskSandboxes.egress), which this server does not allow; its operator can, with the setting egressLimit`,
    );
  assertPossibleEgress(ref, "taskSandboxes.egress", [chosen], input);
  if (rewardEgress === undefined) return { egress: chosen };
  const reward = within(rewardEgress);
  // Fresh sandboxes are started with it.
  assertPossibleEgress(ref, "rewardEgress", [reward], input);
  return { egress: chosen, rewardEgress: reward };
}

/** How one sandbox is made. */
export interface TaskSandboxSpec extends Resources {
  readonly image: string | null;
  readonly memoryMb: number;
  readonly tmpfs?: readonly MemoryFolder[];
  readonly hosts?: readonly HostEntry[];
  readonly capabilities?: CapabilitySet;
  readonly egress?: EgressPolicy;
  /** It is for rewards, and may have `rewardEgress`. */
  readonly isFresh?: boolean;
}

type OpenRequest = LinkParameters<"/open">;

/** The sandbox that a request asks for. One that the policy does not allow is an error that names the setting. */
export function specFor(policy: TaskSandboxPolicy, request: OpenRequest, like: TaskSandboxSpec | null): TaskSandboxSpec {
  if (request.purpose === "fresh" && like !== null)
    return { ...like, isFresh: true, ...(policy.rewardEgress !== undefined && { egress: policy.rewardEgress }) };
  const { image = policy.image, tmpfs, hosts } = request;
  if (image !== null && image !== policy.image) assertAllowed(image, policy.images);
  const egress = narrowed(policy, request.egress);
  const capabilities = capabilitiesOf(policy, request.capabilities);
  return {
    image,
    ...within(policy, request),
    ...(tmpfs !== undefined && {
      tmpfs: tmpfs.map(({ path, size_mb: sizeMb, mode, is_executable: isExecutable }) => ({ path, sizeMb, mode, isExecutable })),
    }),
    ...(hosts !== undefined && { hosts }),
    ...(capabilities !== undefined && { capabilities }),
    ...(egress !== undefined && { egress }),
  };
}

function assertAllowed(image: string, images: readonly string[]): void {
  if (!isImageReference(image))
    throw new PlatformError("environment.invalid", `'${image}' is not an image name, such as registry.example.com/team/name:tag`);
  if (images.some((pattern) => globMatches(pattern, image))) return;
  const listed = images.length === 0 ? "which lists none" : `which lists ${images.join(", ")}`;
  throw new PlatformError(
    "environment.invalid",
    `the image '${image}' is not allowed by deployConfig.taskSandboxes.images of config.json, ${listed}; add it and publish a new version`,
  );
}

/** The limits of a request; each is at most, and by default, that of the policy. */
function within(policy: TaskSandboxPolicy, request: OpenRequest): Pick<TaskSandboxSpec, Limit> {
  const asked: Partial<Record<Limit, number>> = {};
  for (const { limit, field } of limitFields("open")) {
    const amount = request[field];
    if (amount === undefined) continue;
    const most = policy[limit];
    if (most !== undefined && amount > most)
      throw new PlatformError(
        "environment.invalid",
        `${limit} is ${amount}, more than ${limitPath("taskSandboxes", limit)} of config.json allows, which is ${most}`,
      );
    asked[limit] = amount;
  }
  return { memoryMb: policy.memoryMb, ...pickResources(policy), ...asked };
}

function capabilitiesOf({ capabilities }: TaskSandboxPolicy, asked = capabilities): CapabilitySet | undefined {
  if (asked !== "docker" || capabilities === "docker") return asked;
  throw new PlatformError(
    "environment.invalid",
    "capabilities are 'docker', more than deployConfig.taskSandboxes.capabilities of config.json allows; set it to 'docker' and publish a new version",
  );
}

/** The policy that a request asks for, by default all of the instance's, or of its rewards for a fresh sandbox. It may not allow more. */
export function narrowed(
  { egress: ofAgent, rewardEgress }: TaskSandboxPolicy,
  asked: EgressPolicy | undefined,
  isFresh = false,
): EgressPolicy | undefined {
  const isReward = isFresh && rewardEgress !== undefined;
  const egress = isReward ? rewardEgress : ofAgent;
  if (egress === undefined || asked === undefined) return egress;
  const beyond = beyondEgress(asked, egress);
  if (beyond === null) return asked;
  throw new PlatformError(
    "environment.invalid",
    `egress allows '${beyond}', which neither deployConfig.${isReward ? "rewardEgress" : "taskSandboxes.egress"} nor the request for the instance does; it may only be narrowed`,
  );
}

/** The networks of sandboxes, and programs as of containers. */
export function noNetworks({ name }: Pick<SandboxEngine, "name">, what: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `${what}, but the engine '${name}' of this server does not connect sandboxes with each other; start the server with --engine docker and the runtime runc`,
  );
}

/** Folders in memory, and lines of `/etc/hosts`. */
export function noTmpfs({ name }: Pick<SandboxEngine, "name">): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `a sandbox of the task has folders in memory or hosts of its own, but the engine '${name}' of this server gives it neither; start the server with --engine oci or docker`,
  );
}

export function noCapabilities({ name }: Pick<SandboxEngine, "name">): PlatformError {
  return capabilitiesRefused(`sandboxes of the engine '${name}' never have them; start the server with --engine oci or docker`);
}

export function noImages({ name }: Pick<SandboxEngine, "name">, what: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `${what}, but the engine '${name}' of this server runs no images; start the server with --engine oci or docker`,
  );
}
