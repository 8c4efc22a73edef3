import { resolve } from "node:path";
import { listRuns, RunFolder } from "@aenv/rollout";
import type { Command } from "commander";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface RunsOptions {
  readonly runs: string;
}

export function addRunsOption(command: Command): Command {
  return command.option("--runs <folder>", "where runs are kept", "runs");
}

/** The run of this name; a path to its folder is taken too. */
export function getRun(named: string, { runs }: RunsOptions, { cwd }: Terminal): RunFolder {
  const isPath = named.includes("/");
  const parent = isPath ? resolve(cwd, named, "..") : resolve(cwd, runs);
  const run = new RunFolder(parent, isPath ? (named.replace(/\/+$/, "").split("/").at(-1) ?? named) : named);
  if (run.settings() !== null) return run;
  const known = listRuns(parent).map(({ name }) => name);
  throw new Failure(`there is no run '${named}' in ${parent}`, {
    exit: "usage",
    hint: known.length === 0 ? "Play one with: aenv rollout echo" : `There are: ${known.slice(0, 10).join(", ")}`,
  });
}
