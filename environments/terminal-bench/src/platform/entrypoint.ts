import { join } from "node:path";
import type { TaskSandbox } from "@aenv/kit";
import { parseDockerfile } from "../compose/dockerfile.ts";
import { readText } from "../task/files.ts";
import type { EnvironmentDefinition } from "../task/model.ts";

/** The entry point of an image, from its Dockerfile; empty if it has none. That of a prebuilt image is not known. */
export async function entrypointOf(definition: EnvironmentDefinition): Promise<readonly string[]> {
  if (definition.kind !== "dockerfile") return [];
  if (definition.plain?.entrypoint != null) return definition.plain.entrypoint;
  return parseEntrypoint(await readText(join(definition.context, definition.dockerfile)));
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

/** Starts it as a container would, with a command that does nothing. It goes on in the background. */
export async function startEntrypoint(sandbox: TaskSandbox, entrypoint: readonly string[], cwd: string | null): Promise<void> {
  if (entrypoint.length === 0) return;
  const script = 'if command -v setsid >/dev/null; then set -- setsid "$@"; fi; "$@" </dev/null >/dev/null 2>&1 &';
  await sandbox.exec(["sh", "-c", script, "sh", ...entrypoint, "sleep", "infinity"], cwd === null ? {} : { cwd });
}

function commandOf(text: string): readonly string[] {
  if (!text.startsWith("[")) return ["/bin/sh", "-c", text];
  const parsed: unknown = JSON.parse(text);
  return Array.isArray(parsed) ? parsed.map(String) : [];
}
