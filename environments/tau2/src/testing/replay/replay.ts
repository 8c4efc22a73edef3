import { Tally } from "@aenv/benchmark/testing";
import type { DomainDefinition } from "../../core/domain.ts";
import { domains, openDomain } from "../../domains/index.ts";
import { Dict } from "../../python/values/values.ts";
import { replayEpisode } from "./episodes.ts";
import { replayMisc } from "./misc.ts";
import { replayOperations } from "./operations.ts";
import { replayTask } from "./tasks.ts";
import { listAt, readFormat } from "./vectors.ts";

/** Compares a file of vectors with this environment. */
export async function replayFile(path: string, dataPath: string): Promise<Tally> {
  const tally = new Tally(printed);
  const vectors = readFormat(path);
  if (vectors.format === "unknown") tally.compare("format", path, vectors.why, "tasks, random or misc vectors");
  else if (vectors.format === "misc") replayMisc(vectors.groups, dataPath, tally);
  else {
    const definition = domainOf(vectors.records);
    for (const [i, record] of vectors.records.entries()) {
      if (definition === null) tally.compare(vectors.format, String(record.get("task_id")), "no domain has these tools", "its domain");
      else if (vectors.format === "tasks") await replayTask(openDomain(definition.name, dataPath), record, tally);
      else if (vectors.format === "operations") replayOperations(openDomain(definition.name, dataPath), record, i, tally);
      else replayEpisode(openDomain(definition.name, dataPath), record, tally);
    }
  }
  return tally;
}

/** The vectors have the URL of another pydantic version; nothing else differs. */
export function printed(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (text ?? "undefined").replace(/errors\.pydantic\.dev\/2\.\d+\//g, "errors.pydantic.dev/");
}

/** The domain with most of the called tools, because the vectors do not name their domain. */
function domainOf(records: readonly Dict[]): DomainDefinition | null {
  const names = new Set<string>();
  for (const record of records) {
    for (const call of [...listAt(record, "steps"), ...listAt(record, "calls")]) {
      if (call instanceof Dict && call.get("error") === false) names.add(String(call.get("name")));
    }
    for (const operation of listAt(record, "ops")) {
      if (operation instanceof Dict && operation.get("e") === false) names.add(String(operation.get("n")));
    }
  }
  let best: DomainDefinition | null = null;
  let most = 0;
  for (const definition of domains.values()) {
    const tools = [...definition.agent.toolkit.tools, ...(definition.user?.toolkit.tools ?? [])].map(({ name }) => name);
    const known = tools.filter((name) => names.has(name)).length;
    if (known > most) [best, most] = [definition, known];
  }
  return most * 2 > names.size ? best : null;
}
