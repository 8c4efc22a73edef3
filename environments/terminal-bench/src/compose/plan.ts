import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { type ComposeFile, isLogVolume, listOf } from "./compose.ts";
import { type ComposeVariables, interpolate } from "./interpolate.ts";
import { type ComposeService, parseService, unknownKeys } from "./service.ts";

/** The services of a compose task. */
export interface ComposePlan {
  /** The agent's. */
  readonly main: ComposeService;
  /** All, also the agent's: each after those that it depends on. */
  readonly order: readonly ComposeService[];
  /** Why it cannot be run; empty if it can. */
  readonly problems: readonly string[];
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
    const { volumes: _, ...rest } = table;
    return attempt(() => parseService(name, interpolate(rest, variables, `services.${name}`) as typeof table)) ?? parseService(name, {});
  });
  problems.push(...volumeProblems(tables, mainService), ...networkProblems(document, parsed), ...dependencyProblems(parsed));
  for (const key of Object.keys(document))
    if (!["services", "version", "name", "networks", "volumes"].includes(key) && !key.startsWith("x-"))
      problems.push(`${key} of the compose file is not supported`);
  const main = parsed.find(({ name }) => name === mainService) ?? parseService(mainService, {});
  return { main, order: inOrder(parsed) ?? parsed, problems };
}

/** A volume of one service is a folder of its sandbox. One that several services share is none. */
function volumeProblems(services: ComposeFile["services"], mainService: string): string[] {
  const problems: string[] = [];
  const users = new Map<string, string[]>();
  for (const [name, { volumes }] of Object.entries(services)) {
    for (const volume of listOf(volumes)) {
      if (isLogVolume(volume)) {
        if (name !== mainService) problems.push(`services.${name}.volumes shares a folder of logs, which is not supported`);
        continue;
      }
      if (isTable(volume) && volume.type !== "volume")
        problems.push(`services.${name}.volumes: the type '${volume.type}' is not supported`);
      const source = isTable(volume) ? String(volume.source ?? "") : (String(volume).split(":")[0] ?? "");
      users.set(source, [...(users.get(source) ?? []), name]);
    }
  }
  const shared = [...users].filter(([source, names]) => source !== "" && new Set(names).size > 1);
  return [
    ...problems,
    ...shared.map(([source, names]) => `the volume '${source}' is shared by ${names.join(" and ")}, which is not supported`),
  ];
}

/** All services are in one network. */
function networkProblems(document: ComposeFile["document"], services: readonly ComposeService[]): string[] {
  const problems: string[] = [];
  for (const [name, network] of Object.entries(isTable(document.networks) ? document.networks : {})) {
    const keys = isTable(network) ? Object.keys(network).filter((key) => !(key === "driver" && network[key] === "bridge")) : [];
    problems.push(...keys.map((key) => `networks.${name}.${key} is not supported`));
  }
  const sets = new Set(services.map(({ networks }) => networks.join(", ")));
  if (sets.size > 1) problems.push(`services in different networks are not supported: ${[...sets].join("; ")}`);
  return problems;
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
