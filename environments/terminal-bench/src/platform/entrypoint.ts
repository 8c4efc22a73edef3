import type { TaskSandbox } from "@aenv/kit";
import { parseBoundedJson } from "@aenv/kit";
import { parseDockerfile } from "../compose/dockerfile.ts";
import { agentImage } from "../compose/images.ts";
import type { ComposePlan } from "../compose/plan.ts";
import { readText } from "../task/files.ts";
import type { Task } from "../task/model.ts";

/**
 * What the agent's container runs beside the agent: what its compose file says, else the entry point and the command of its Dockerfile. In
 * Harbor, a command that does nothing is in place of that of the Dockerfile. Empty if there is neither; what a prebuilt image runs is not
 * known.
 */
export async function programOf(task: Task, plan: ComposePlan | null): Promise<readonly string[]> {
  const { build } = await agentImage(task, "");
  const image = build === null ? NO_PROGRAM : parseProgram(await readText(build.dockerfile));
  const { entrypoint = null, command = null } = plan?.main ?? {};
  // A command of the image belongs to its own entry point.
  const imageCommand = task.format === "terminal-bench-1" && entrypoint === null ? image.command : [];
  const words = command ?? imageCommand;
  const all = [...(entrypoint ?? image.entrypoint), ...words];
  return all.length > 0 && words.length === 0 ? [...all, "sleep", "infinity"] : all;
}

interface ImageProgram {
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

const NO_PROGRAM: ImageProgram = { entrypoint: [], command: [] };

/** The program of the last stage. */
export function parseProgram(dockerfile: string): ImageProgram {
  let program = NO_PROGRAM;
  for (const { name, text } of parseDockerfile(dockerfile)) {
    if (name === "FROM") program = NO_PROGRAM;
    if (name === "ENTRYPOINT") program = { ...program, entrypoint: commandOf(text) };
    if (name === "CMD") program = { ...program, command: commandOf(text) };
  }
  return program;
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
