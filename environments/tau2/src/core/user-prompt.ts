import { PyError } from "@aenv/benchmark";
import type { Domain } from "./domain.ts";
import { printScenario, type Task } from "./tasks.ts";
import type { Tool } from "./tools/tool.ts";

/** The tools that the user of a task has; null if none. */
export function userTools(domain: Domain, task: Task): readonly Tool[] | null {
  try {
    const tools = domain.create().getUserTools(task.user_tools);
    return tools.length === 0 ? null : tools;
  } catch (error) {
    // The domain has no user side, or the task names an unknown tool.
    if (error instanceof PyError) return null;
    throw error;
  }
}

/** The user simulator's system prompt: the benchmark's guidelines and the task's scenario. */
export function userPrompt(domain: Domain, task: Task): string {
  const file = userTools(domain, task) === null ? "simulation_guidelines.md" : "simulation_guidelines_tools.md";
  const guidelines = domain.data.text("user_simulator", file);
  return `${guidelines}\n\n<scenario>\n${printScenario(task.user_scenario)}\n</scenario>`;
}
