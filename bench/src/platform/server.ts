import { fileURLToPath } from "node:url";
import { Child } from "../processes/child.ts";
import type { Memory } from "../processes/usage.ts";

/** The platform in its own process. Closing it fails if a process of it is left. */
export interface PlatformServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  cpuUs(): Promise<number>;
  memory(): Promise<Memory>;
  /** Publishes a project and returns its `name@version`. */
  publish(
    project: keyof typeof projects,
    isolation: "shared" | "instance",
    deployConfig?: Readonly<Record<string, unknown>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<string>;
  /** A new token of an owner who publishes and trains, as an Authorization header. */
  token(owner: string): Promise<{ readonly authorization: string }>;
  /** The peak of its resident memory so far. */
  peakBytes(): Promise<number>;
  /** The pids of the processes that run environments or wait in the pool. */
  sandboxes(): Promise<readonly number[]>;
  /** Kills only the server; its sandboxes keep running. */
  kill(): Promise<void>;
}

/** The folders of the published projects; most of the suite uses the ledger. */
export const projects = {
  ledger: fileURLToPath(new URL("./projects/ledger", import.meta.url)),
  shop: fileURLToPath(new URL("./projects/shop", import.meta.url)),
  trio: fileURLToPath(new URL("./projects/trio", import.meta.url)),
  tau2: fileURLToPath(new URL("../../../environments/tau2", import.meta.url)),
  games: fileURLToPath(new URL("../../../environments/games", import.meta.url)),
} as const;

/** With an explicit home, another server can continue with its state. */
export async function startPlatformServer(settings: Readonly<Record<string, unknown>> = {}, home?: string): Promise<PlatformServer> {
  const args = [JSON.stringify(settings), ...(home === undefined ? [] : [home])];
  const child = new Child(new URL("./servers/platform.ts", import.meta.url), args, {
    nodeOptions: ["--expose-gc"],
    endBy: "SIGTERM",
  });
  return {
    controlUrl: await child.query<string>("controlUrl"),
    dataUrl: await child.query<string>("url"),
    cpuUs: () => child.query("cpuUs"),
    memory: () => child.query("memory"),
    publish: (project, isolation, deployConfig, headers) =>
      child.query("publish", { folder: projects[project], isolation, deployConfig, headers }),
    token: (owner) => child.query("token", owner),
    peakBytes: () => child.query("peakBytes"),
    sandboxes: () => child.query("sandboxes"),
    kill: () => child.kill(),
    [Symbol.asyncDispose]: async () => {
      try {
        await child.query("close");
      } finally {
        await child[Symbol.asyncDispose]();
      }
    },
  };
}
