import { existsSync } from "node:fs";
import { join } from "node:path";
import { splitRef } from "@aenv/contract";
import type { RunSettings } from "@aenv/rollout";
import { findBuiltIn } from "../project/benchmarks.ts";
import { readProject } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { openSource, type Source, type SourceOptions } from "./source.ts";

/** Opens an environment for a run that is played again: the one that is named, else the run's own, with the run's variables. */
export async function openRunSource(
  run: RunSettings,
  named: string | undefined,
  options: SourceOptions,
  terminal: Terminal,
): Promise<Source> {
  const environment = named ?? environmentOf(run, options, terminal.cwd);
  return openSource(environment, { ...options, var: { ...run.variables, ...options.var } }, terminal);
}

/** The settings of a run that is played again from another source. */
export function settingsOn({ environment, digest, folder }: Source, { folder: _, ...run }: RunSettings): RunSettings {
  return { ...run, environment, environment_digest: digest, ...(folder !== null && { folder }) };
}

/**
 * What `openSource` takes for the environment of a run: a built-in one of this version by its name, the folder that it was played from,
 * else `name@version`.
 */
function environmentOf({ environment, folder }: RunSettings, { systemUrl }: SourceOptions, cwd: string): string {
  if (systemUrl !== undefined) return environment;
  if (folder !== undefined) {
    if (existsSync(join(folder, "config.json"))) return folder;
    throw new Failure(`the run was played from ${folder}, which is not there any more`, {
      exit: "usage",
      hint: `Give the environment's folder, or a server that has ${environment} with --system-url.`,
    });
  }
  const { name, version } = splitRef(environment);
  const builtIn = findBuiltIn(name);
  return builtIn !== null && readProject(builtIn, cwd).config.version === version ? builtIn : environment;
}
