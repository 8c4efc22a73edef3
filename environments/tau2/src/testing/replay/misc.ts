import { createHash } from "node:crypto";
import { floatRepr, PyError } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { hashValue } from "../../core/database/hash.ts";
import { parseAction, toFunctionalFormat } from "../../core/messages/action.ts";
import { userPrompt, userTools } from "../../core/user-prompt.ts";
import { domains, openDomain } from "../../domains/index.ts";
import { calculate } from "../../python/calculate/calculate.ts";
import { readJson } from "../../python/json/reader.ts";
import { toJsonStr, writeJson } from "../../python/json/writer.ts";
import { formatFixed, roundFloat } from "../../python/numbers.ts";
import { repr } from "../../python/repr.ts";
import { Dict, PyFloat, type PyValue } from "../../python/values/values.ts";
import { readHexFloat, readRepr } from "./literals.ts";
import { dictAt } from "./vectors.ts";

/** Groups of `[input, output]` with a string as output. */
const TEXTS: Readonly<Record<string, (input: string) => string>> = {
  to_json_str: (input) => toJsonStr(readRepr(input)),
  float_repr: (input) => floatRepr(readHexFloat(input)),
  round2: (input) => floatRepr(roundFloat(readHexFloat(input), 2)),
  fmt_2f: (input) => formatFixed(new PyFloat(readHexFloat(input))),
  dict_hash: (input) => hashValue(readJson(input)),
};

export function replayMisc(groups: Dict, dataPath: string, tally: Tally): void {
  for (const [key, cases] of groups) {
    const group = String(key);
    if (group === "prompts" && cases instanceof Dict) replayPrompts(cases, dataPath, tally);
    else if (!Array.isArray(cases)) tally.skip(`'${group}' is not a list of cases`);
    else for (const [i, vector] of cases.entries()) if (Array.isArray(vector)) replayCase(group, i, vector, tally);
  }
}

function replayCase(group: string, index: number, [input = null, output = null, kind = null]: readonly PyValue[], tally: Tally): void {
  const where = `${group}[${index}] ${writeJson(input)}`;
  const run = TEXTS[group];
  if (run !== undefined && typeof input === "string")
    tally.compare(
      group,
      where,
      attempt(() => run(input)),
      output,
    );
  else if (group === "calculate") tally.compare(group, where, calculated(input), [output, kind]);
  else if (group === "parse_action_string") tally.compare(group, where, parsedAction(String(input)), writeJson(output, { sortKeys: true }));
  else if (group === "to_functional_format" && input instanceof Dict) {
    tally.compare(
      group,
      where,
      attempt(() => toFunctionalFormat("tool", input)),
      output,
    );
  } else tally.compare(group, where, "unknown group", "a known group");
}

function attempt(run: () => string): string {
  try {
    return run();
  } catch (error) {
    if (error instanceof PyError) return `${error.kind}: ${error.message}`;
    throw error;
  }
}

function calculated(expression: PyValue): [string, string | null] {
  try {
    return [calculate(expression), null];
  } catch (error) {
    if (error instanceof PyError) return [`Error: ${error.message}`, error.kind];
    throw error;
  }
}

function parsedAction(input: string): string {
  return attempt(() => {
    const action = parseAction(input);
    if ("text" in action) return writeJson(Dict.of<PyValue>({ content: action.text, tool_calls: null }));
    const { name, arguments: args, requestor } = action.call;
    const functional = toFunctionalFormat(name, args);
    const call = Dict.of<PyValue>({ name, arguments: args, repr: repr(args), requestor, functional });
    return writeJson(Dict.of<PyValue>({ content: null, tool_calls: [call] }), { sortKeys: true });
  }).replace(/^(\w+Error: .*)$/s, (text) => writeJson(Dict.of({ error: text })));
}

/** Domains of the benchmark that this environment does not have. */
const ABSENT = new Set(["banking_knowledge"]);

function replayPrompts(prompts: Dict, dataPath: string, tally: Tally): void {
  for (const [key, recorded] of prompts) {
    const name = String(key);
    if (!(recorded instanceof Dict)) continue;
    const hashes = dictAt(recorded, "all_user_system_prompt_sha256");
    if (ABSENT.has(name)) tally.skip(`prompts of ${name}, which is not part of this environment`, hashes.size);
    else if (!domains.has(name))
      for (const [id] of hashes) tally.compare("prompts", `${name} ${String(id)}`, "unknown domain", "its prompt");
    else replayDomainPrompts(name, recorded, hashes, dataPath, tally);
  }
}

function replayDomainPrompts(name: string, recorded: Dict, hashes: Dict, dataPath: string, tally: Tally): void {
  const domain = openDomain(name, dataPath);
  const sha = (text: string): string => createHash("sha256").update(text).digest("hex");
  for (const [id, wanted] of hashes) {
    const task = domain.tasks.find(String(id));
    tally.compare("prompts", `${name} ${String(id)}`, task === undefined ? "no such task" : sha(userPrompt(domain, task)), wanted);
  }
  const task = domain.tasks.find(textAt(recorded, "task_id"));
  if (task === undefined) return;
  tally.compare("prompts", `${name} user_system_prompt`, userPrompt(domain, task), recorded.get("user_system_prompt"));
  const tools = userTools(domain, task)?.map((tool) => tool.name) ?? null;
  tally.compare("prompts", `${name} user_tools`, tools, recorded.get("user_tools"));
  const solo = recorded.get("solo_tools");
  if (Array.isArray(solo)) {
    const environment = domain.create();
    const listed = [...environment.getTools(), ...environment.getUserTools()].map((tool) => tool.name);
    tally.compare(
      "prompts",
      `${name} solo_tools`,
      listed,
      solo.filter((tool) => tool !== "done"),
    );
  }
  for (const key of ["agent_system_prompt_sha256", "solo_agent_system_prompt_sha256", "tools_description_user"]) {
    if (recorded.has(key)) tally.skip("the benchmark's own prompts and tool descriptions");
  }
}
