import { PyError } from "@aenv/benchmark";
import { DataDirectory } from "../core/data/directory.ts";
import { Domain, type DomainDefinition } from "../core/domain.ts";
import { repr } from "../python/repr.ts";
import { airline } from "./airline/domain.ts";
import { mock } from "./mock/domain.ts";
import { retail } from "./retail/domain.ts";
import { telecom, telecomWorkflow } from "./telecom/domain.ts";

/** All domains by name. A new domain is a folder and a line here. */
export const domains: ReadonlyMap<string, DomainDefinition> = new Map(
  [airline, mock, retail, telecom, telecomWorkflow].map((domain) => [domain.name, domain]),
);

const opened = new Map<string, Domain>();

/** A domain with the files of a data directory, which are read once per process. */
export function openDomain(name: string, dataPath: string): Domain {
  const key = `${dataPath}\0${name}`;
  let domain = opened.get(key);
  if (domain === undefined) {
    const definition = domains.get(name);
    if (definition === undefined) throw new PyError("KeyError", repr(`Domain ${name} not found in registry`));
    domain = new Domain(definition, new DataDirectory(dataPath));
    opened.set(key, domain);
  }
  return domain;
}
