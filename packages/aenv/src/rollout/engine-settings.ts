import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { type EngineName, engines } from "@aenv/sandbox/engines";
import { resourceSettingNames, type ServerConfig, variableOf } from "@aenv/server";
import { homeFolder } from "@aenv/server/folders";
import type { Terminal } from "../terminal/terminal.ts";

/** Settings of `aenv server` that decide how an engine runs sandboxes. A command with a server of its own takes them from the same variables. */
const ENGINE_SETTINGS = [
  "runtime",
  "sandboxUsers",
  "dockerSocket",
  "runsc",
  "registryAuth",
  "imageRegistries",
  "insecureRegistries",
  "imageStore",
  "imageBytes",
  "imageEntries",
  "minFreeDisk",
  ...resourceSettingNames,
  "taskMemoryMb",
  "taskCapabilities",
  "taskMemoryTotalMb",
  "minAvailableMemoryMb",
  "startTimeout",
  "sandboxesReady",
] as const satisfies readonly (keyof ServerConfig)[];

export interface EngineSettings {
  /** Where the homes of servers inside of commands are. */
  readonly homes: string;
  readonly flags: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** What sandboxes of tasks do, such as connections that their policy refuses, is no news for the person at the terminal. */
const QUIET = { logLevel: "error" };

/** The share of the machine's memory; the rest is for the server, the agents and files that the system keeps in memory. */
const SHARE_FOR_SANDBOXES = 0.8;

/** The settings of the engine of a server inside of a command. */
export function engineSettings(engine: EngineName, env: Terminal["env"]): EngineSettings {
  const { openImages, embeddedSettings } = engines[engine];
  // Sandboxes without images end with the command, so its files can be where the system removes them.
  if (openImages === undefined) return { homes: tmpdir(), flags: { engine }, variables: {} };
  const home = homeFolder(env.AENV_HOME);
  const defaults: Readonly<Record<string, unknown>> = {
    // Images are kept for the next command.
    imageStore: join(home, "images"),
    taskMemoryTotalMb: Math.floor((SHARE_FOR_SANDBOXES * memoryBytes()) / 2 ** 20),
    // An image may have to be unpacked, with many others at the same time.
    startTimeout: "10m",
    ...embeddedSettings,
  };
  const variables = Object.fromEntries(ENGINE_SETTINGS.map((key) => [variableOf(key), env[variableOf(key)]]));
  const unset = Object.entries(defaults).filter(([key]) => !variables[variableOf(key)]);
  return { homes: join(home, "embedded"), flags: { engine, ...QUIET, ...Object.fromEntries(unset) }, variables };
}

/** A container may have less than the machine. */
function memoryBytes(): number {
  const own = process.constrainedMemory();
  return own > 0 ? Math.min(own, totalmem()) : totalmem();
}
