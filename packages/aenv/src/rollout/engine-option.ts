import { type EngineName, engineNames, engines } from "@aenv/sandbox/engines";
import { type Command, Option } from "commander";

const usable = engineNames.filter((name) => engines[name].embeddedSettings !== undefined);
/** The engines with images of their own on this machine. */
export const imageEngines = engineNames.filter((name) => engines[name].openImages !== undefined);

export interface EngineOptions {
  readonly engine?: EngineName;
}

export function addEngineOption(command: Command): Command {
  return command.addOption(
    new Option("--engine <engine>", "what runs sandboxes: process, or for environments with images oci or docker").choices(usable),
  );
}
