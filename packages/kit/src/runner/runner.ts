import { existsSync, realpathSync } from "node:fs";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { flushCompileCache } from "node:module";
import { isAbsolute, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { OWN_CONNECTIONS_VARIABLE, runnerRoutes } from "@aenv/contract";
import { parseBoundedJson, readBoundedText } from "@aenv/contract";
import { firstLocation, type SourceLocation } from "../definition/source-location.ts";
import { acceptOnly, type Callers } from "../http/callers.ts";
import type { Served, ServeOptions } from "../serve/serve.ts";
import { useKernelRandom } from "./kernel-random.ts";

// The blank runner: a process that is started in advance and is bound to an environment later.
//
// It imports almost no other code of the kit at run time: a bundle has its own copy, and loading it twice would cost time.

/** What a bundle's main.js exports. */
interface Bundle {
  readonly name: string;
  readonly version: string;
  /** Serves the environment, without an instance, on a listening server. */
  serveOn(server: Server, options: ServeOptions): Promise<Served>;
}

interface BindRequest {
  readonly folder: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The process is bound in advance, so it warms up before the first request. */
  readonly isAhead: boolean;
}

type State =
  | { readonly kind: "blank" }
  | { readonly kind: "binding" | "failed"; readonly folder: string }
  | { readonly kind: "bound"; readonly folder: string; readonly served: Served; readonly answer: RequestListener };

// An `import` would evaluate every export of node:http, and its WebSocket loads all of undici, which takes longer than all the rest.
const { createServer } = process.getBuiltinModule("node:http");

/** The environment variable by which the engine finds the processes of a sandbox. */
const MARKER = "AENV_SANDBOX";
/** Typed by the contract, whose modules are not loaded here. */
const OWN_CONNECTIONS: typeof OWN_CONNECTIONS_VARIABLE = "AENV_OWN_CONNECTIONS";
const BIND: typeof runnerRoutes.bind.path = "/bind";
const STOP: typeof runnerRoutes.stop.path = "/stop";
const MAX_BIND_BYTES = 1024 * 1024;
const ORPHAN_CHECK_MS = 1_000;
const WARM_UP_AFTER_MS = 100;

/** Where the runner listens. A sandbox with its own network has an address instead of a socket file. */
type Place = { readonly path: string } | { readonly host: string; readonly port: number };

class Runner {
  readonly #server = createServer((request, response) => this.#onRequest(request, response));
  readonly #place: Place;
  readonly #endsWith: number | null;
  #state: State = { kind: "blank" };

  /** `endsWith` is the pid of a process that this one does not outlive. It need not be the parent: the server starts programs by another process. */
  constructor(place: Place, callers: Callers | null, endsWith: number | null) {
    this.#place = place;
    this.#endsWith = endsWith;
    if (callers !== null) acceptOnly(this.#server, callers);
  }

  /** A copy of this process with its memory gets other random numbers before its first request: its connections are new. */
  onConnection(listener: () => void): void {
    this.#server.prependListener("connection", listener);
  }

  start(): void {
    this.#server.listen(this.#place);
    // Delayed, so that a runner that is bound at once does not lose time.
    setTimeout(() => this.#state.kind === "blank" && warmUp(), WARM_UP_AFTER_MS).unref();
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => this.#stop());
    const socket = "path" in this.#place ? this.#place.path : null;
    // Without its socket the runner cannot be reached: it was replaced, or its server has ended.
    setInterval(() => {
      if ((socket !== null && !existsSync(socket)) || (this.#endsWith !== null && hasEnded(this.#endsWith))) this.#stop();
    }, ORPHAN_CHECK_MS).unref();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "POST" && request.url === BIND) this.#onBind(request, response);
    else if (request.method === "POST" && request.url === STOP) sendJson(response, 200, { success: true, data: null }, () => this.#stop());
    else if (this.#state.kind === "bound") this.#state.answer(request, response);
    else refuse(response, 503, "environment.unhealthy", "blank", { retryable: true });
  }

  async #onBind(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let bind: BindRequest;
    try {
      bind = parseBind(await readBoundedText(request, { maxBytes: MAX_BIND_BYTES }));
    } catch (error) {
      refuse(response, 400, "request.invalid", (error as Error).message);
      return;
    }
    if (this.#state.kind !== "blank") {
      refuse(response, 409, "sandbox.bound", `this process is bound already, to ${this.#state.folder}`);
      return;
    }
    try {
      const { name, version } = await this.#bind(bind);
      sendJson(response, 200, { success: true, data: { name, version } });
    } catch (error) {
      // The author's code may have run in part, so this process cannot be bound again.
      this.#state = { kind: "failed", folder: bind.folder };
      const { code, message, place } = explain(error, bind.folder);
      refuse(response, 400, code, message, { place }, () => process.exit(1));
    }
  }

  async #bind({ folder, variables, isAhead }: BindRequest): Promise<Bundle> {
    this.#state = { kind: "binding", folder };
    // The marker by which the engine finds child processes must not be overwritten.
    const { [MARKER]: marker } = process.env;
    Object.assign(process.env, variables, marker !== undefined && { [MARKER]: marker });
    if (isAhead) await warmUp();
    const bundle: Partial<Bundle> = await import(pathToFileURL(join(folder, "main.js")).href);
    if (typeof bundle.serveOn !== "function") {
      throw new Error("main.js exports no function 'serveOn': the bundle was made by an older version; build it again");
    }
    const own = this.#server.listeners("request");
    // Host names are not checked here: the gateway does that.
    const served = await bundle.serveOn(this.#server, { first: null, host: "0.0.0.0", warmsUp: isAhead, acceptsPlatform: true });
    // The bundle answers from now on, except for the routes of the runner itself.
    const [answer] = this.#server.listeners("request").filter((one) => !own.includes(one)) as RequestListener[];
    if (answer === undefined) throw new Error("the bundle's serveOn did not take the server");
    this.#server.off("request", answer);
    this.#state = { kind: "bound", folder, served, answer };
    // Written now, because the process may be killed.
    setTimeout(flushCompileCache, 1_000).unref();
    return bundle as Bundle;
  }

  #stop(): void {
    if (this.#state.kind !== "bound") {
      // Removes the socket file too.
      this.#server.close();
      process.exit(0);
    }
    this.#state.served.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  }
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // A process of another user refuses the signal, and runs.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Node loads many built-in modules lazily, and starts its threads for files late; what every kit uses is loaded and started here. */
async function warmUp(): Promise<void> {
  await Promise.all(["node:crypto", "node:fs/promises", "node:timers/promises", "node:zlib"].map((name) => import(name)));
  await process.getBuiltinModule("node:fs/promises").stat(process.execPath);
  new Response(new Blob(["warm"]).stream(), { headers: new Headers() });
  new Request("http://localhost", { signal: new AbortController().signal });
  structuredClone(new TextDecoder().decode(new TextEncoder().encode("warm")));
}

function parseBind(text: string): BindRequest {
  const { folder, variables = {}, isAhead = false } = parseBoundedJson(text) as Partial<BindRequest>;
  if (typeof folder !== "string" || !isAbsolute(folder))
    throw new Error(`'folder' must be an absolute path, not ${JSON.stringify(folder)}`);
  for (const [name, value] of Object.entries(variables)) {
    if (typeof value !== "string") throw new Error(`the variable '${name}' must be a string, not ${JSON.stringify(value)}`);
    // The system would truncate them or read them as another variable.
    if (name === "" || /[=\0]/.test(name) || value.includes("\0"))
      throw new Error(`'${name}' or its value is not valid for an environment variable`);
  }
  return { folder, variables, isAhead: isAhead === true };
}

/** The error's code and message, and its line in the bundle if known. */
function explain(error: unknown, folder: string): { code: string; message: string; place: SourceLocation | null } {
  const { code, message, details, stack } = error as Error & { code?: unknown; details?: { place?: SourceLocation } };
  const isPlatformCode = typeof code === "string" && /^[a-z]+\.[a-z_]+$/.test(code);
  const known = details?.place ?? null;
  const place = known ?? locationInside(folder, stack ?? "");
  const text = message ?? String(error);
  return {
    code: isPlatformCode ? code : "environment.invalid",
    message: known !== null || place === null ? text : `${relative(realpath(folder), place.file)}:${place.line}: ${text}`,
    place,
  };
}

function locationInside(folder: string, stack: string): SourceLocation | null {
  for (const line of stack.split("\n")) {
    const place = firstLocation(line);
    if (place?.file.startsWith(realpath(folder))) return place;
  }
  return null;
}

function realpath(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : folder;
}

function refuse(response: ServerResponse, status: number, code: string, error: string, more: object = {}, onSent?: () => void): void {
  sendJson(response, status, { success: false, error, errorInfo: { code, retryable: false, ...more } }, onSent);
}

function sendJson(response: ServerResponse, status: number, body: object, onSent?: () => void): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  if (onSent !== undefined) response.once("close", onSent);
  response.end(text);
}

/** Null if the options name no place. */
function parsePlace({ socket, host, port }: { socket?: string; host?: string; port?: string }): Place | null {
  if (socket !== undefined) return { path: socket };
  return host !== undefined && /^\d{1,5}$/.test(port ?? "") ? { host, port: Number(port) } : null;
}

/**
 * Who may connect. An engine connects to an address other than loopback from outside of the sandbox; an engine that connects from inside
 * names the digest of its key. Where programs beside this one pass its connections on, the operator sets the variable.
 */
function callersOf(place: Place, digest: string | undefined): Callers | null {
  if (digest !== undefined) return { kind: "key", digest };
  if ("path" in place || place.host.startsWith("127.") || place.host === "::1" || process.env[OWN_CONNECTIONS] === "allow") return null;
  return { kind: "outside" };
}

// The compile cache is enabled in start.js, before this file is loaded.
const { values } = parseArgs({
  options: {
    socket: { type: "string" },
    host: { type: "string" },
    port: { type: "string" },
    "compile-cache": { type: "string" },
    "caller-digest": { type: "string" },
    "kernel-random": { type: "boolean" },
    "ends-with": { type: "string" },
  },
});
const place = parsePlace(values);
if (place === null) {
  console.error("the runner needs a socket to listen on: --socket <path>, or --host <address> --port <number>");
  process.exit(2);
}
const endsWith = values["ends-with"] === undefined ? null : Number(values["ends-with"]);
const runner = new Runner(place, callersOf(place, values["caller-digest"]), endsWith);
if (values["kernel-random"] === true) {
  const random = useKernelRandom();
  runner.onConnection(() => random.reseed());
}
runner.start();
