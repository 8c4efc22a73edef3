import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { parseYaml } from "../yaml/pyyaml.ts";

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
      const source = mountSource(volume);
      if (source !== null) found.push(`services.${name}.volumes mounts ${source} of the host`);
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
  return /^\$\{?(?:T_BENCH_TASK_(?:AGENT_)?LOGS|HOST_(?:VERIFIER_LOGS|AGENT_LOGS|ARTIFACTS))_PATH\}?:/.test(String(volume));
}

/** The folder of the host that a volume mounts; null for a named volume, and for a path alone, which is a volume without a name. */
function mountSource(volume: unknown): string | null {
  if (isTable(volume)) return volume.type === "bind" || /^[./~$]/.test(String(volume.source ?? "")) ? String(volume.source) : null;
  const text = String(volume);
  if (isLogVolume(text) || /^\/[^:$]*$/.test(text)) return null;
  return /^[./~$]/.test(text) ? (text.split(":")[0] ?? text) : null;
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
