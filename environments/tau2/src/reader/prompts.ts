import type { Checkout } from "./checkout/checkout.ts";
import { ReaderError } from "./error.ts";
import { evaluate } from "./python/constants.ts";
import type { Assignment } from "./python/module.ts";
import type { Project, Scope } from "./python/project.ts";

const FOLDERS = ["agent", "evaluator", "gym", "user"];
const PROMPT = /prompt|instruction|guideline/i;

/**
 * The prompts of the benchmark by their location: `agent.llm_agent.AGENT_INSTRUCTION`.
 * A prompt in a function is prefixed with the function's name. Placeholders are kept: `{name}`.
 */
export function readPrompts(checkout: Checkout, project: Project): Record<string, string> {
  const prompts: Record<string, string> = {};
  for (const file of FOLDERS.flatMap((folder) => checkout.list(`src/tau2/${folder}`)).filter((path) => path.endsWith(".py"))) {
    const name = file
      .replace(/^src\//, "")
      .replace(/(\/__init__)?\.py$/, "")
      .replaceAll("/", ".");
    const scope = findScope(project, name);
    if (!scope) continue;
    const { assignments, functions, classes } = scope.module;
    const add = (owner: string, found: Iterable<Assignment>): void => {
      for (const assignment of found) {
        const text = textOf(assignment, scope, project);
        const key = [name.replace(/^tau2\./, ""), owner, assignment.name].filter(Boolean).join(".");
        if (text !== null) prompts[key] ??= text;
      }
    };
    add("", assignments.values());
    for (const one of functions) add(one.name, one.locals);
    for (const one of classes.values()) {
      add(one.name, one.fields);
      for (const method of one.methods) add(`${one.name}.${method.name}`, method.locals);
    }
  }
  return prompts;
}

/** Null for a module with unsupported code: our default prompts are used instead. */
function findScope(project: Project, name: string): Scope | null {
  return readable(() => project.find(name));
}

function textOf(assignment: Assignment, scope: Scope, project: Project): string | null {
  const { name, value } = assignment;
  if (!value || !PROMPT.test(name)) return null;
  const text = readable(() => evaluate(value, scope, project, "keep"));
  return typeof text === "string" && text !== "" ? text : null;
}

function readable<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ReaderError) return null;
    throw error;
  }
}
