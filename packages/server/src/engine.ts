import { existsSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { baseRunnerCommand, OciEngine, openBaseRoot, ProcessEngine, type RootFiles, type SandboxEngine } from "@aenv/sandbox";
import type { ServerConfig } from "./config.ts";

export interface OpenEngineOptions {
  readonly config: ServerConfig;
  /** The command line of the blank runner as a process of this machine. */
  readonly runner: readonly string[];
  /** The runner as one file of JavaScript, for sandboxes that do not see the files of this machine. */
  readonly runnerCode?: (() => Promise<string>) | undefined;
}

/** The engine of the configuration, and the command line of the blank runner in its sandboxes. */
export function openEngine({ config, runner, runnerCode }: OpenEngineOptions): { engine: SandboxEngine; runner: readonly string[] } {
  switch (config.engine) {
    case "process":
      return { engine: new ProcessEngine({ home: config.home, useInit: config.processCommands }), runner };
    case "oci":
      return { engine: openOci(config, runnerCode), runner: baseRunnerCommand };
  }
}

function openOci(config: ServerConfig, runnerCode: OpenEngineOptions["runnerCode"]): OciEngine {
  const { home, dataDir, runtime, runsc, sandboxesReady, registryAuth, insecureRegistries } = config;
  if (runnerCode === undefined) throw new PlatformError("internal", "the engine oci needs the code of the runner");
  let opening: ReturnType<typeof openBaseRoot> | undefined;
  const openBase = async () => openBaseRoot({ folder: join(home, "base-root"), runner: await runnerCode() });
  return new OciEngine({
    home,
    runtime,
    poolSize: sandboxesReady,
    ...(runsc !== null && { runscPath: runsc }),
    images: { insecureRegistries, ...(registryAuth !== null && { authFile: registryAuth }) },
    base: async (layers): Promise<RootFiles> => {
      opening ??= openBase().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      const base = await opening;
      await base.addTo(layers, AbortSignal.timeout(UNPACK_MS));
      // The benchmarks find their data at the same path.
      const data = existsSync(dataDir) ? [{ kind: "bind", source: dataDir, target: dataDir, isReadOnly: true } as const] : [];
      return { layers: [base.digest], config: null, mounts: data };
    },
  });
}

const UNPACK_MS = 120_000;
