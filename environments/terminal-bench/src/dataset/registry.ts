import { list, map, object } from "../fields/containers.ts";
import { InvalidValue, optional, withDefault } from "../fields/field.ts";
import { anything, oneOf, text } from "../fields/scalars.ts";
import { resolveVersion } from "./version.ts";

const registryTask = object({ name: text, path: text, git_url: optional(text), git_commit_id: optional(text) });

const registryDataset = object({
  name: text,
  version: text,
  description: text,
  tasks: list(registryTask),
  metrics: withDefault(list(object({ type: oneOf("mean", "sum", "min", "max", "uv-script"), kwargs: withDefault(map(anything), {}) })), []),
});

export type RegistryDataset = ReturnType<typeof registryDataset.parse>;

/** A registry file: the datasets of several names and versions. */
export function parseRegistry(source: string): readonly RegistryDataset[] {
  return list(registryDataset).parse(JSON.parse(source), "");
}

/** The dataset that `name` or `name@version` means. */
export function findDataset(registry: readonly RegistryDataset[], reference: string): RegistryDataset {
  const at = reference.indexOf("@");
  const name = at < 0 ? reference : reference.slice(0, at);
  const candidates = registry.filter((dataset) => dataset.name === name);
  if (candidates.length === 0) {
    const known = [...new Set(registry.map((dataset) => dataset.name))].join(", ");
    throw new InvalidValue("", `the registry has no dataset '${name}'; it has: ${known}`);
  }
  const version = at < 0 ? resolveVersion(candidates.map((dataset) => dataset.version)) : reference.slice(at + 1);
  const found = candidates.find((dataset) => dataset.version === version);
  if (found !== undefined) return found;
  const versions = candidates.map((dataset) => dataset.version).join(", ");
  throw new InvalidValue("", `the dataset '${name}' has no version '${version}'; it has: ${versions}`);
}
