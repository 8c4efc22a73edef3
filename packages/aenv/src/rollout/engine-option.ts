import type { ServerConfig } from "@aenv/server";
import { type Command, Option } from "commander";

export const engines = ["process", "oci", "docker"] as const satisfies readonly ServerConfig["engine"][];
export type EngineName = (typeof engines)[number];

export interface EngineOptions {
  readonly engine?: EngineName;
}

export function addEngineOption(command: Command): Command {
  return command.addOption(
    new Option("--engine <engine>", "what runs sandboxes: process, or for environments with images oci or docker").choices(engines),
  );
}
