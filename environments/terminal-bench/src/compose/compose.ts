import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { parseYaml } from "../python/pyyaml.ts";

type Table = Readonly<Record<string, unknown>>;

/** A compose file: its services in order, and all other keys. */
export interface ComposeFile {
  readonly services: Readonly<Record<string, Table>>;
  readonly document: Table;
}

export function parseCompose(source: string): ComposeFile {
  const document = parseYaml(source);
  if (!isTable(document) || !isTable(document.services)) throw new InvalidValue("services", "a compose file needs services");
  const services = Object.entries(document.services).map(([name, service]) => {
    if (service !== null && !isTable(service)) throw new InvalidValue(`services.${name}`, "expected a table");
    return [name, service ?? {}] as const;
  });
  return { services: Object.fromEntries(services), document };
}

/** Keys of a service with which a container gets out of its sandbox. */
const DANGEROUS = ["privileged", "pid", "ipc", "uts", "userns_mode", "cgroup_parent", "cap_add", "devices", "security_opt", "volumes_from"];

/** Why a compose file of an untrusted task is refused; empty if it may be used. */
export function hazards({ services, document }: ComposeFile): string[] {
  const found: string[] = [];
  for (const [name, service] of Object.entries(services)) {
    for (const key of DANGEROUS) if (isSet(service[key])) found.push(`services.${name}.${key} is not allowed`);
    if (service.network_mode === "host") found.push(`services.${name}.network_mode: host is not allowed`);
    for (const volume of listOf(service.volumes)) {
      const source = outsideSource(volume);
      if (source !== null) found.push(`services.${name}.volumes mounts ${source}, which is outside of the task's folder`);
    }
  }
  for (const [name, volume] of Object.entries(isTable(document.volumes) ? document.volumes : {})) {
    if (isTable(volume) && volume.driver_opts !== undefined) found.push(`volumes.${name}.driver_opts is not allowed`);
  }
  if (document.include !== undefined) found.push("include is not allowed");
  return found;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Mounts a log folder of the harness, which is a variable. */
export function isLogVolume(volume: unknown): boolean {
  const text = isTable(volume) ? `${volume.source}:` : String(volume);
  return /^\$\{?(?:T_BENCH_TASK_(?:AGENT_)?LOGS|HOST_(?:VERIFIER_LOGS|AGENT_LOGS|ARTIFACTS))_PATH\}?:/.test(text);
}

/** What a volume mounts from outside of the task's folder; null for a file or folder of the task and for a volume. */
function outsideSource(volume: unknown): string | null {
  if (isLogVolume(volume)) return null;
  const [source = "", target] = isTable(volume) ? [String(volume.source ?? ""), ""] : String(volume).split(":");
  // A path alone is a volume without a name.
  const isAlone = target === undefined && source.startsWith("/");
  // What a variable stands for is not known here.
  return !isAlone && /^[/~$]|^\..*\$|(?:^|\/)\.\.(?:\/|$)/.test(source) ? source : null;
}

/** Entries of `environment`, which is a table or a list of `NAME=value`. */
export function environmentOf(service: Table): Record<string, string> {
  const { environment } = service;
  if (isTable(environment)) {
    return Object.fromEntries(Object.entries(environment).flatMap(([key, value]) => (value === null ? [] : [[key, String(value)]])));
  }
  const pairs = listOf(environment)
    .map(String)
    .filter((pair) => pair.includes("="));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}
