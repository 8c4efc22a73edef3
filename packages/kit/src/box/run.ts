import { parseArgs } from "node:util";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { EnvironmentDefinition } from "../definition.ts";
import { type Served, serve } from "./serve.ts";

export interface Runnable {
  readonly name: string;
  readonly version: string;
  readonly definition: EnvironmentDefinition;
}

/**
 * Serves an environment as a process of its own: it says on standard output, one JSON line an event, when it is ready or
 * why it cannot be, and goes on until it is told to stop.
 */
export async function runBox(load: () => Promise<Runnable>, argv: readonly string[]): Promise<void> {
  try {
    const options = readOptions(argv);
    const { name, version, definition } = await load();
    const served = await serve(definition, { name, version, ...options });
    say({ event: "ready", name, version, url: served.url, port: served.port, pid: process.pid });
    stopOnSignal(served);
  } catch (error) {
    const details = isPlatformError(error) ? error.details : {};
    const code = isPlatformError(error) ? error.code : "internal";
    say({ event: "failed", code, message: messageOf(error), ...(details.place as object | undefined) });
    process.exitCode = 1;
  }
}

function readOptions(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: { host: { type: "string" }, port: { type: "string" }, socket: { type: "string" }, empty: { type: "boolean" } },
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
    ...(values.empty === true && { first: null }),
  };
}

/** The first signal lets calls in flight finish; a second one ends the process as it would have without us. */
function stopOnSignal(served: Served): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      say({ event: "stopping", signal });
      served.close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}

function say(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}
