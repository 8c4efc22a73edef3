import type { EngineKind } from "@aenv/sandbox";
import type { Access } from "./access/access.ts";
import type { Delegates } from "./access/delegates.ts";
import type { ServerConfig } from "./config/config.ts";
import type { BuiltIns } from "./hub/built-ins.ts";
import type { OpenTrainerServices } from "./trainer-services.ts";

/** What a server is made of. */
export interface ServerParts {
  readonly config: ServerConfig;
  /** The blank runner's command line; the server uses environments only through their HTTP APIs. */
  readonly runner: readonly string[];
  /** The runner as one file of JavaScript; needed by engines whose sandboxes do not see the files of this machine. */
  readonly runnerCode?: () => Promise<string>;
  /** The command line of a worker; without it, the data port is served by this process. */
  readonly worker?: readonly string[];
  readonly version: string;
  /** Environment variables of this process: programs that pull images get those for proxies and certificates. */
  readonly machineVariables?: Readonly<Record<string, string | undefined>>;
  /** Environments that are published at their first use. */
  readonly builtIns?: BuiltIns;
  /** Opens sessions, rollouts and OpenEnv, which use the server through its own ports. */
  readonly openTrainerServices: OpenTrainerServices;
  /** Engine that replaces that of the configuration. */
  readonly engine?: EngineKind<ServerConfig>;
}

export interface RunningServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  /** On loopback only; null if not configured. */
  readonly adminUrl: string | null;
  readonly access: Access;
  /** The pids of the processes that serve the data port; empty if this one does. */
  readonly workerPids: () => readonly number[];
  /** Tokens by which this process acts for a caller. */
  readonly delegates: Delegates;
  /** Creates an administrator's token if tokens are required and there is none yet; else null. */
  firstToken(): Promise<string | null>;
  /** Refuses new requests, lets calls in flight finish, and ends the instances or leaves them to other servers. */
  close(): Promise<void>;
}
