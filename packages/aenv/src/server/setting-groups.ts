/** The headings of `aenv server --help`, in their order, and the settings below each: first what most operators set. */
const groups: Readonly<Record<string, readonly string[]>> = {
  "Settings that matter first:": [
    "home",
    "host",
    "controlPort",
    "dataPort",
    "publicUrl",
    "store",
    "access",
    "engine",
    "runtime",
    "maxInstances",
  ],
  "Ports and requests:": [
    "adminPort",
    "metricsToken",
    "workers",
    "linkUrl",
    "allowedHosts",
    "headersTimeout",
    "requestTimeout",
    "bodyTimeout",
    "maxConnections",
    "maxBodyBytes",
  ],
  "Access and quotas of owners:": [
    "adminToken",
    "idsAreKeys",
    "allowProcessEngine",
    "secretsDir",
    "createsPerSecond",
    "blobBytes",
    "maxSnapshots",
    "snapshotBytes",
  ],
  "Instances and pools:": [
    "defaultTtl",
    "idleAfter",
    "freezeAfter",
    "minAvailableMemoryMb",
    "startTimeout",
    "startsAtOnce",
    "poolMin",
    "poolMax",
    "poolPerOwner",
    "poolTotal",
    "maxHosts",
    "verifications",
    "verificationsPerOwner",
  ],
  "Sandboxes:": [
    "sandboxUsers",
    "runcOwners",
    "runc",
    "runsc",
    "dockerSocket",
    "sandboxesReady",
    "memoryMb",
    "cpus",
    "diskMb",
    "processes",
    "processCommands",
    "commandsPerInstance",
    "commandTimeout",
    "egressLimit",
    "sandboxSubnet",
    "snapshotSpaceMb",
  ],
  "Images and sandboxes of tasks:": [
    "imageStore",
    "registryAuth",
    "insecureRegistries",
    "taskSandboxesPerInstance",
    "maxTaskSandboxes",
    "taskMemoryTotalMb",
    "taskMemoryMb",
  ],
  "Rollouts:": ["rolloutsAtOnce", "maxRollouts", "rolloutModels", "rolloutResultsKept", "rolloutResultBytes"],
  "Kubernetes:": [
    "kubeconfig",
    "kubeServer",
    "kubeNamespace",
    "kubeGroup",
    "kubeNetworkPolicies",
    "kubeDomainSuffix",
    "initKeyFile",
    "baseImage",
    "podTemplates",
    "runscClass",
    "nodeWait",
  ],
  "Operation:": ["dataDir", "logLevel", "otlpUrl", "round", "silence", "drainTime"],
};

const headings = new Map(Object.entries(groups).flatMap(([heading, keys]) => keys.map((key) => [key, heading] as const)));

/** The order of the settings in the help. */
export const settingOrder: readonly string[] = [...headings.keys()];

/** The heading below which a setting is listed; null if no group names it. */
export function headingOf(key: string): string | null {
  return headings.get(key) ?? null;
}
