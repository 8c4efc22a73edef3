import type { DataDirectory } from "../core/data.ts";
import { Dict } from "../python/values.ts";
import { AGENT, JUDGE, SOLO_AGENT, USER, USER_WITH_TOOLS } from "./ours.ts";

/** The texts that models are given, besides policies and scenarios. */
export interface Prompts {
  readonly agent: string;
  readonly soloAgent: string;
  readonly user: string;
  readonly userWithTools: string;
  readonly judge: string;
}

const FILE = "prompts.json";

/** A data directory's `prompts.json` wins, then the benchmark's own guidelines for users, then our words. */
export function readPrompts(data: DataDirectory): Prompts {
  const file = data.has(FILE) ? data.value(FILE) : new Dict();
  if (!(file instanceof Dict)) throw new Error(`${FILE} in ${data.path} must hold an object`);
  const given = (key: string, otherwise: () => string): string => {
    const value = file.get(key);
    if (value === undefined) return otherwise();
    if (typeof value !== "string") throw new Error(`${FILE} in ${data.path}: '${key}' must be a text`);
    return value;
  };
  const guidelines = (name: string, ours: string): string => (data.has("user_simulator", name) ? data.text("user_simulator", name) : ours);
  return {
    agent: given("agent", () => AGENT),
    soloAgent: given("soloAgent", () => SOLO_AGENT),
    user: given("user", () => guidelines("simulation_guidelines.md", USER)),
    userWithTools: given("userWithTools", () => guidelines("simulation_guidelines_tools.md", USER_WITH_TOOLS)),
    judge: given("judge", () => JUDGE),
  };
}

/** What an agent is told; in solo mode the task's ticket stands for the user. */
export function agentPrompt(prompts: Prompts, policy: string, solo: { readonly ticket: string | null } | null): string {
  const instructions = solo === null ? prompts.agent : prompts.soloAgent;
  const head = `<instructions>\n${instructions}\n</instructions>\n<policy>\n${policy}\n</policy>`;
  return solo === null ? head : `${head}\n<ticket>\n${solo.ticket ?? "None"}\n</ticket>`;
}

/** What the user simulator is told. */
export function userPrompt(prompts: Prompts, scenario: string, hasTools: boolean): string {
  return `${hasTools ? prompts.userWithTools : prompts.user}\n\n<scenario>\n${scenario}\n</scenario>`;
}
