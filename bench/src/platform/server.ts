import { fileURLToPath } from "node:url";
import { Child } from "../processes/child.ts";
import type { Memory } from "../processes/usage.ts";

/** The platform in a process of its own. At the end it fails if anything of it is left. */
export interface PlatformServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  cpuUs(): Promise<number>;
  memory(): Promise<Memory>;
  /** Publishes a project, and answers its `name@version`. */
  publish(project: keyof typeof projects, isolation: "shared" | "instance"): Promise<string>;
  /** The pids of the processes that run environments, or wait to. */
  sandboxes(): Promise<readonly number[]>;
  /** Ends the server alone, at once: what it keeps goes on running. */
  kill(): Promise<void>;
}

/** The folders of what is published; the ledger is what most of the platform's suite runs. */
export const projects = {
  ledger: fileURLToPath(new URL("./projects/ledger", import.meta.url)),
  shop: fileURLToPath(new URL("./projects/shop", import.meta.url)),
  tau2: fileURLToPath(new URL("../../../environments/tau2", import.meta.url)),
} as const;

/** With a home that is given, another server can come after this one. */
export async function startPlatformServer(settings: Readonly<Record<string, unknown>> = {}, home?: string): Promise<PlatformServer> {
  const args = [JSON.stringify(settings), ...(home === undefined ? [] : [home])];
  const child = new Child(new URL("./servers/platform.ts", import.meta.url), args, {
    nodeOptions: ["--expose-gc"],
    endBy: "SIGTERM",
  });
  return {
    controlUrl: await child.ask<string>("controlUrl"),
    dataUrl: await child.ask<string>("url"),
    cpuUs: () => child.ask("cpuUs"),
    memory: () => child.ask("memory"),
    publish: (project, isolation) => child.ask("publish", { folder: projects[project], isolation }),
    sandboxes: () => child.ask("sandboxes"),
    kill: () => child.kill(),
    [Symbol.asyncDispose]: async () => {
      try {
        await child.ask("close");
      } finally {
        await child[Symbol.asyncDispose]();
      }
    },
  };
}
