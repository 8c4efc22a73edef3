import { createHash } from "node:crypto";
import { strip } from "@aenv/benchmark";
import type { DataDirectory } from "../core/data/directory.ts";
import { Dict } from "../python/values/values.ts";
import { AGENT, JUDGE, SOLO_AGENT, USER, USER_WITH_TOOLS } from "./defaults.ts";

/** The prompts of the models, apart from policies and scenarios. */
export interface Prompts {
  readonly agent: string;
  readonly soloAgent: string;
  readonly user: string;
  readonly userWithTools: string;
  readonly judge: string;
}

export const promptNames = ["agent", "soloAgent", "user", "userWithTools", "judge"] as const satisfies readonly (keyof Prompts)[];

const FILE = "prompts.json";

/** The benchmark's prompts: recognized by their digest under any key of `prompts.json`, in other revisions by their key. */
const BENCHMARK_PROMPTS: Partial<Record<keyof Prompts, { readonly digest: string; readonly path: RegExp }>> = {
  agent: {
    digest: "e00faa515230c8648931f73ed25c9528418cccc522fe8936917f4c2a047bc5d2",
    path: /^agent\.llm_agent\.AGENT_INSTRUCTION$/,
  },
  soloAgent: {
    digest: "487847d6c6626b15b8e60e5999420a554f2dc0ea56b2f0a506d21418993a36ec",
    path: /^agent\.llm_agent\.AGENT_SOLO_INSTRUCTION$/,
  },
  judge: {
    digest: "994b7abd2d3d869adbc2ce1dce85be5b2ab0243e04f086994737e4fc5e5fd24b",
    path: /^evaluator\.evaluator_nl_assertions\..*\.system_prompt$/,
  },
};

const read = new WeakMap<DataDirectory, Prompts>();

/** From the data directory's `prompts.json` (by our keys, then by the benchmark's), else from its user guidelines, else our defaults. */
export function readPrompts(data: DataDirectory): Prompts {
  let prompts = read.get(data);
  if (prompts === undefined) {
    prompts = collect(data, textsOf(data));
    read.set(data, prompts);
  }
  return prompts;
}

function collect(data: DataDirectory, texts: ReadonlyMap<string, string>): Prompts {
  const given = (key: keyof Prompts, otherwise: string): string => findPrompt(texts, key) ?? otherwise;
  const guidelines = (name: string, ours: string): string => (data.has("user_simulator", name) ? data.text("user_simulator", name) : ours);
  return {
    agent: given("agent", AGENT),
    soloAgent: given("soloAgent", SOLO_AGENT),
    user: given("user", guidelines("simulation_guidelines.md", USER)),
    userWithTools: given("userWithTools", guidelines("simulation_guidelines_tools.md", USER_WITH_TOOLS)),
    judge: given("judge", JUDGE),
  };
}

function textsOf(data: DataDirectory): ReadonlyMap<string, string> {
  const file = data.has(FILE) ? data.value(FILE) : new Dict();
  if (!(file instanceof Dict)) throw new Error(`${FILE} in ${data.path} must contain an object`);
  const texts = new Map<string, string>();
  for (const [key, text] of file) {
    if (typeof text !== "string") throw new Error(`${FILE} in ${data.path}: '${String(key)}' must be a string`);
    texts.set(String(key), text);
  }
  return texts;
}

/** A prompt of a `prompts.json`, under our key or the benchmark's; null if it has none. */
export function findPrompt(texts: ReadonlyMap<string, string>, key: keyof Prompts): string | null {
  const own = texts.get(key);
  const theirs = BENCHMARK_PROMPTS[key];
  if (own !== undefined || theirs === undefined) return own ?? null;
  const known = [...texts.values()].flatMap(formsOf).find((form) => createHash("sha256").update(form).digest("hex") === theirs.digest);
  if (known !== undefined) return known;
  const found = [...texts].find(([path]) => theirs.path.test(path))?.[1];
  return found === undefined ? null : strip(key === "soloAgent" ? withStopTool(found) : found);
}

/** In the sources, prompts may have surrounding whitespace and a placeholder for the name of the stop tool. */
function formsOf(text: string): readonly string[] {
  return [text, withStopTool(text)].flatMap((form) => [form, strip(form)]);
}

function withStopTool(text: string): string {
  return text.replace(/\{\w*\}/g, "done");
}

/** The agent's system prompt; in solo mode it contains the task's ticket. */
export function agentPrompt(prompts: Prompts, policy: string, solo: { readonly ticket: string | null } | null): string {
  const instructions = solo === null ? prompts.agent : prompts.soloAgent;
  const head = `<instructions>\n${instructions}\n</instructions>\n<policy>\n${policy}\n</policy>`;
  return solo === null ? head : `${head}\n<ticket>\n${solo.ticket ?? "None"}\n</ticket>`;
}

/** The user simulator's system prompt. */
export function userPrompt(prompts: Prompts, scenario: string, hasTools: boolean): string {
  return `${hasTools ? prompts.userWithTools : prompts.user}\n\n<scenario>\n${scenario}\n</scenario>`;
}
