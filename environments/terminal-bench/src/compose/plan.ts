import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { type ComposeFile, isLogVolume, listOf } from "./compose.ts";
import { type ComposeVariables, interpolate } from "./interpolate.ts";
import { type ComposeService, parseService, unknownKeys } from "./service.ts";
import { type ComposeVolume, volumeHazard } from "./volume.ts";

/** The services of a compose task. */
export interface ComposePlan {
  /** The agent's. */
  readonly main: ComposeService;
  /** All, also the agent's: each after those that it depends on. */
  readonly order: readonly ComposeService[];
  /** Why it cannot be run; empty if it can. */
  readonly problems: readonly string[];
  /** Whether all networks of a service lead only to other services. */
  readonly isInternal: (service: ComposeService) => boolean;
  /** Whether a volume is one that several services have. */
  readonly isShared: (volume: ComposeVolume) => boolean;
}

/** What a compose file says, with its variables replaced. The agent's service may be missing: then all of it is that of the task. */
export function planCompose({ services, document }: ComposeFile, mainService: string, variables: ComposeVariables): ComposePlan {
  const problems: string[] = [];
  const attempt = <T>(make: () => T): T | null => {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      problems.push(error.message);
      return null;
    }
  };
  const tables: ComposeFile["services"] = { [mainService]: {}, ...services };
  const parsed = Object.entries(tables).map(([name, table]) => {
    problems.push(...unknownKeys(name, table, name === mainService));
    const volumes = listOf(table.volumes).filter((volume) => !isLogVolume(volume));
    const replaced = () => interpolate({ ...table, volumes }, variables, `services.${name}`) as typeof table;
    return attempt(() => parseService(name, replaced())) ?? parseService(name, {});
  });
  problems.push(...logProblems(tables, mainService), ...volumeProblems(document, parsed, mainService));
  problems.push(...networkProblems(document, parsed), ...dependencyProblems(parsed));
  for (const key of Object.keys(document))
    if (!["services", "version", "name", "networks", "volumes"].includes(key) && !key.startsWith("x-"))
      problems.push(`${key} of the compose file is not supported`);
  const main = parsed.find(({ name }) => name === mainService) ?? parseService(mainService, {});
  const internal = internalNetworks(document);
  return {
    main,
    order: inOrder(parsed) ?? parsed,
    problems,
    isInternal: ({ networks }) => networks.every(({ name }) => internal.has(name)),
    isShared: ({ name }) => isShared(name, parsed),
  };
}

/** A folder of logs is one of the agent's own sandbox, from which it is read. */
function logProblems(services: ComposeFile["services"], mainService: string): string[] {
  const sharing = Object.entries(services).filter(([name, { volumes }]) => name !== mainService && listOf(volumes).some(isLogVolume));
  return sharing.map(([name]) => `services.${name}.volumes shares a folder of logs, which is not supported`);
}

function volumeProblems(document: ComposeFile["document"], services: readonly ComposeService[], mainService: string): string[] {
  const main = services.find(({ name }) => name === mainService);
  const shared = main?.volumes.filter(({ name }) => isShared(name, services)) ?? [];
  return [
    ...optionProblems(
      "volumes",
      document.volumes,
      (key, value) => key === "name" || key === "labels" || (key === "driver" && value === "local"),
    ),
    ...shared.flatMap((volume) => volumeHazard(volume) ?? []).map((problem) => `services.${mainService}.volumes: ${problem}`),
  ];
}

/** Whether several services have a volume. One of a single service is a folder of its sandbox. */
function isShared(volume: string | null, services: readonly ComposeService[]): boolean {
  return volume !== null && services.filter(({ volumes }) => volumes.some(({ name }) => name === volume)).length > 1;
}

function networkProblems(document: ComposeFile["document"], services: readonly ComposeService[]): string[] {
  const declared = ["default", ...Object.keys(isTable(document.networks) ? document.networks : {})];
  const isKnown = (key: string, value: unknown) =>
    ["name", "labels", "attachable", "internal"].includes(key) || (key === "driver" && value === "bridge");
  return [
    ...optionProblems("networks", document.networks, isKnown),
    ...services.flatMap(({ name, networks }) =>
      networks
        .filter((network) => !declared.includes(network.name))
        .map((network) => `services.${name}.networks names '${network.name}', which is no network of the file`),
    ),
  ];
}

/** The options of networks or volumes that have an effect in Docker and none here. */
function optionProblems(key: string, tables: unknown, isKnown: (key: string, value: unknown) => boolean): string[] {
  return Object.entries(isTable(tables) ? tables : {}).flatMap(([name, table]) =>
    Object.entries(isTable(table) ? table : {})
      .filter(([option, value]) => value !== null && value !== false && !isKnown(option, value))
      .map(([option]) => `${key}.${name}.${option} is not supported`),
  );
}

/** Networks that lead only to the services in them. */
function internalNetworks({ networks }: ComposeFile["document"]): ReadonlySet<string> {
  const all = Object.entries(isTable(networks) ? networks : {});
  return new Set(all.filter(([, table]) => isTable(table) && table.internal === true).map(([name]) => name));
}

function dependencyProblems(services: readonly ComposeService[]): string[] {
  const problems: string[] = [];
  for (const { name, dependsOn } of services) {
    for (const [other, condition] of dependsOn) {
      const found = services.find((service) => service.name === other);
      if (found === undefined) problems.push(`services.${name}.depends_on names '${other}', which is no service`);
      else if (condition === "healthy" && found.healthcheck === null)
        problems.push(`services.${name}.depends_on waits until '${other}' is healthy, which has no healthcheck in the compose file`);
    }
  }
  if (inOrder(services) === null) problems.push("depends_on has a circle");
  return problems;
}

/** Null if services wait for each other in a circle. */
function inOrder(services: readonly ComposeService[]): readonly ComposeService[] | null {
  const ordered: ComposeService[] = [];
  let left = services;
  while (left.length > 0) {
    const names = left.map(({ name }) => name);
    const next = left.filter(({ dependsOn }) => ![...dependsOn.keys()].some((name) => names.includes(name)));
    if (next.length === 0) return null;
    ordered.push(...next);
    left = left.filter((service) => !next.includes(service));
  }
  return ordered;
}
