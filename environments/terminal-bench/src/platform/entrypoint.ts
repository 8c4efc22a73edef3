import type { TaskSandbox } from "@aenv/kit";
import { parseBoundedJson } from "@aenv/kit";
import { parseDockerfile } from "../compose/dockerfile.ts";
import type { ComposePlan } from "../compose/plan.ts";
import { agentImage } from "../images/images.ts";
import { readText } from "../task/files.ts";
import type { Task } from "../task/model.ts";

/**
 * What the agent's container runs beside the agent: the entry point of its Dockerfile with a command that does nothing, or what its compose
 * file says. Empty if there is neither; that of a prebuilt image is not known.
 */
export async function programOf(task: Task, plan: ComposePlan | null): Promise<readonly string[]> {
  const entrypoint = plan?.main.entrypoint ?? (await entrypointOf(task));
  const command = plan?.main.command ?? null;
  return entrypoint.length === 0 && command === null ? [] : [...entrypoint, ...(command ?? ["sleep", "infinity"])];
}

async function entrypointOf(task: Task): Promise<readonly string[]> {
  const { definition } = task;
  if (definition.kind === "dockerfile" && definition.plain?.entrypoint != null) return definition.plain.entrypoint;
  const { build } = await agentImage(task, "");
  return build === null ? [] : parseEntrypoint(await readText(build.dockerfile));
}

/** Of the last stage. */
export function parseEntrypoint(dockerfile: string): readonly string[] {
  let entrypoint: readonly string[] = [];
  for (const { name, text } of parseDockerfile(dockerfile)) {
    if (name === "FROM") entrypoint = [];
    if (name === "ENTRYPOINT") entrypoint = commandOf(text);
  }
  return entrypoint;
}

/** Starts it as a container would. It goes on in the background. */
export async function startProgram(sandbox: TaskSandbox, program: readonly string[], cwd: string | null): Promise<void> {
  if (program.length === 0) return;
  const script = 'if command -v setsid >/dev/null; then set -- setsid "$@"; fi; "$@" </dev/null >/dev/null 2>&1 &';
  await sandbox.exec(["sh", "-c", script, "sh", ...program], cwd === null ? {} : { cwd });
}

function commandOf(text: string): readonly string[] {
  if (!text.startsWith("[")) return ["/bin/sh", "-c", text];
  const parsed: unknown = parseBoundedJson(text);
  return Array.isArray(parsed) ? parsed.map(String) : [];
}
