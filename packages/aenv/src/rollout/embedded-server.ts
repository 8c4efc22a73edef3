import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatRef } from "@aenv/contract";
import { HubClient } from "@aenv/sdk";
import { readServerConfig, startServer } from "@aenv/server";
import { bundleProject } from "../bundle/bundle.ts";
import { ownPackage } from "../project/own-package.ts";
import type { Project } from "../project/project.ts";
import { runnerCommand } from "../server/runner.ts";

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
  readonly onOutput: (text: string) => void;
}

const HOME_PREFIX = "aenv-rollout-";

/** Starts a server on free ports of loopback, in a temporary folder, and publishes the project there. */
export async function startEmbeddedServer(project: Project, options: EmbeddedOptions): Promise<EmbeddedServer> {
  removeAbandonedHomes();
  // The name says whose home it is, so that a later command can remove it if this one is killed.
  const home = mkdtempSync(join(tmpdir(), `${HOME_PREFIX}${process.pid}-`));
  const remove = () => rmSync(home, { recursive: true, force: true });
  try {
    const { digest: hash, bytes } = await bundleProject(project, { timeoutMs: options.loadTimeoutMs, onOutput: options.onOutput });
    const config = readServerConfig({
      flags: { home, dataDir: options.dataDir, store: "memory:", controlPort: 0, dataPort: 0, logLevel: "warn", poolMin: 0 },
      variables: {},
    });
    const server = await startServer({ config, runner: [...runnerCommand(home), "--ends-with-parent"], version: ownPackage().version });
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

/** Removes what killed commands have left; their sandboxes have ended by themselves. */
function removeAbandonedHomes(): void {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(HOME_PREFIX))) {
    const pid = Number(name.slice(HOME_PREFIX.length).split("-")[0]);
    if (!Number.isInteger(pid) || isAlive(pid)) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // It belongs to another user.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
