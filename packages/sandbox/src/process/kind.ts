import { type Limit, limitNames, PlatformError } from "@aenv/contract";
import type { EngineKind } from "../engine/kind.ts";

/** The settings of the server that the engine depends on. */
export interface ProcessServerSettings extends Readonly<Partial<Record<Limit, number | null>>> {
  readonly home: string;
  readonly processCommands: boolean;
}

export const processKind: EngineKind<ProcessServerSettings> = {
  summary: "plain processes of this machine",
  variants: [{ use: "processes of this machine; no isolation", needs: [] }],
  embeddedSettings: {},
  open: async (settings, { runner }) => {
    for (const name of limitNames)
      if (name !== "memoryMb" && (settings[name] ?? null) !== null)
        throw new PlatformError(
          "request.invalid",
          `the setting ${name} is ${settings[name]}, and the engine process cannot limit that; choose the engine oci or docker, or remove the setting`,
        );
    const { ProcessEngine } = await import("./engine.ts");
    return { engine: new ProcessEngine({ home: settings.home, useInit: settings.processCommands }), runner };
  },
};
