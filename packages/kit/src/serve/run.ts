import { parseArgs } from "node:util";
import { isPlatformError, messageOf, OWN_CONNECTIONS_KEY, OWN_CONNECTIONS_VARIABLE, PlatformError } from "@aenv/contract";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import { locationInProject, withLocation } from "../definition/error-location.ts";
import type { LocalChild } from "../definition/local-child.ts";
import { locationOf } from "../definition/source-location.ts";
import { type Served, type ServeOptions, serve } from "./serve.ts";

export interface Runnable {
  readonly name: string;
  readonly version: string;
  readonly definition: EnvironmentDefinition;
  /** The project's folder; with it, failures of the author's code are reported with file and line. */
  readonly root?: string;
  /** Its children, where no platform runs them. */
  readonly uses?: readonly LocalChild[];
}

export interface RunOptions extends Pick<ServeOptions, "homePage" | "models"> {
  /** Refuses an environment with invalid tasks, such as two with one id, before it is served; for development. */
  readonly checksTasks?: boolean;
}

/**
 * Serves an environment as a process of its own until a signal stops it. Writes events to standard output, one JSON object per
 * line: when it is ready, or why it failed.
 */
export async function runSandbox(
  load: () => Promise<Runnable>,
  argv: readonly string[],
  { checksTasks = false, ...more }: RunOptions = {},
): Promise<void> {
  try {
    const options = { ...readOptions(argv), ...more };
    const loaded = await load();
    const { name, version } = loaded;
    const served = await serveLoaded(loaded, options, checksTasks);
    writeEvent({ event: "ready", name, version, url: served.url, port: served.port, pid: process.pid });
    stopOnSignal(served);
  } catch (error) {
    const details = isPlatformError(error) ? error.details : {};
    const code = isPlatformError(error) ? error.code : "internal";
    writeEvent({ event: "failed", code, message: messageOf(error), ...(details.place as object | undefined) });
    process.exitCode = 1;
  }
}

async function serveLoaded(
  { name, version, definition, root, uses }: Runnable,
  options: ServeOptions,
  checksTasks: boolean,
): Promise<Served> {
  try {
    const served = await serve(definition, { name, version, ...(uses !== undefined && { uses }), ...options });
    if (checksTasks) await checkTasks(served);
    return served;
  } catch (error) {
    if (!isPlatformError(error)) throw error;
    const line = root === undefined ? null : locationInProject(error.cause, root);
    throw withLocation(error, line ?? (isAuthorError(error) ? locationOf(definition) : null));
  }
}

/** Tasks that cannot be listed now may be available later; invalid tasks stay invalid. */
async function checkTasks(served: Served): Promise<void> {
  try {
    await served.host.tasks.common();
  } catch (error) {
    if (!isPlatformError(error, "environment.invalid")) return;
    await served.close();
    throw error;
  }
}

function isAuthorError(error: PlatformError): boolean {
  return isPlatformError(error, "environment.invalid", "instance.setup_failed", "instance.start_timeout");
}

function readOptions(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      host: { type: "string" },
      port: { type: "string" },
      socket: { type: "string" },
      empty: { type: "boolean" },
      use: { type: "string", multiple: true },
    },
    allowPositionals: true,
  });
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new PlatformError("request.invalid", `--port is '${values.port}'; it must be a number from 0 to 65535`);
  }
  return {
    ...(values.host !== undefined && { host: values.host }),
    ...(port !== undefined && { port }),
    ...(values.socket !== undefined && { socketPath: values.socket }),
    ...(values.socket === undefined && callersOf(process.env[OWN_CONNECTIONS_VARIABLE] ?? "allow")),
    ...(values.empty === true && { first: null }),
  };
}

/** What the engine of the sandbox says about connections from inside. */
function callersOf(own: string): Pick<ServeOptions, "refusesOwnMachine" | "callerDigest"> {
  if (own.startsWith(OWN_CONNECTIONS_KEY)) return { callerDigest: own.slice(OWN_CONNECTIONS_KEY.length) };
  return own === "refuse" ? { refusesOwnMachine: true } : {};
}

/** The first signal lets running calls finish; a second one has its default effect and ends the process. */
function stopOnSignal(served: Served): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      writeEvent({ event: "stopping", signal });
      served.close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}

function writeEvent(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}
