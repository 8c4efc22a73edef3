import { rmSync } from "node:fs";
import { formatRef } from "@aenv/contract";
import type { EngineName } from "@aenv/sandbox/engines";
import { HubClient } from "@aenv/sdk";
import { readServerConfig, startServer } from "@aenv/server";
import { openTrainerServices } from "@aenv/trainer";
import { bundleProject } from "../bundle/bundle.ts";
import { ownPackage } from "../project/own-package.ts";
import type { Project } from "../project/project.ts";
import { runnerCode, runnerCommand } from "../server/runner.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { createHome, removeAbandonedHomes } from "./embedded-homes.ts";
import { engineSettings } from "./engine-settings.ts";

/** A server in this process with one environment published on it. */
export interface EmbeddedServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  readonly environment: string;
  readonly digest: string;
}

export interface EmbeddedOptions {
  readonly loadTimeoutMs: number;
  /** The folder of the benchmarks' data. */
  readonly dataDir: string;
  readonly engine: EngineName;
  /** Variables of this command, some of which are settings of the engine. */
  readonly env: Terminal["env"];
  readonly onOutput: (text: string) => void;
}

/** Starts a server on free ports of loopback, in a temporary folder, and publishes the project there. */
export async function startEmbeddedServer(project: Project, options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { homes, flags, variables } = engineSettings(options.engine, options.env);
  await removeAbandonedHomes(homes);
  const { digest: hash, bytes } = await bundleProject(project, { timeoutMs: options.loadTimeoutMs, onOutput: options.onOutput });
  const common = { dataDir: options.dataDir, store: "memory:", controlPort: 0, dataPort: 0, logLevel: "warn", poolMin: 0 };
  // Instances end with this command, however long it takes.
  const settings = readServerConfig({ flags: { ...common, ...flags, defaultTtl: "30d" }, variables });
  const home = createHome(homes, settings);
  const remove = () => rmSync(home, { recursive: true, force: true });
  try {
    const config = { ...settings, home };
    const runner = [...runnerCommand(home), "--ends-with", String(process.pid)];
    const server = await startServer({
      config,
      runner,
      runnerCode,
      openTrainerServices,
      version: ownPackage().version,
      machineVariables: options.env,
    });
    const close = () => server.close().finally(remove);
    try {
      const hub = new HubClient(server.controlUrl);
      const digest = `sha256:${hash}`;
      const environment = formatRef(project.config);
      await hub.uploadBundle(digest, bytes);
      const artifacts = [{ type: "bundle", content: digest }];
      await hub.create(environment, { ...project.config, artifacts }, { verify: false });
      return { controlUrl: server.controlUrl, dataUrl: server.dataUrl, environment, digest, [Symbol.asyncDispose]: close };
    } catch (error) {
      await close();
      throw error;
    }
  } catch (error) {
    remove();
    throw error;
  }
}
