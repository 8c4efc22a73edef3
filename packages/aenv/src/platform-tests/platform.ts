import { once } from "node:events";
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DeclaredModels, InstanceRecord, Role } from "@aenv/contract";
import { type RunningServer, readServerConfig, type ServerParts, startServer } from "@aenv/server";
import { openTrainerServices } from "@aenv/trainer";
import { runnerCode } from "../server/runner.ts";
import { type BundleOptions, bundleOf, cacheFolder } from "./bundles.ts";
import { endProcesses, leftOf } from "./processes.ts";
import { testWorker, testWorkers } from "./test-workers.ts";

export interface PlatformOptions {
  /** `memory:`, `sqlite:FILE` or `redis://…`; default: SQLite in the platform's home. */
  readonly store?: string;
  /** Any setting of the server's configuration. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** A home that outlives this platform, for restarts and several servers; the caller deletes it. */
  readonly home?: string;
  /** Makes the sandboxes; that of the flags by default. */
  readonly engine?: NonNullable<ServerParts["engine"]>;
}

/** A complete server for a test: on loopback, on free ports, in a temporary home. */
export interface Platform extends AsyncDisposable {
  readonly home: string;
  readonly controlUrl: string;
  readonly dataUrl: string;
  readonly server: RunningServer;
  /** A new token as an Authorization header. */
  token(owner: string, ...roles: readonly Role[]): Promise<{ readonly authorization: string }>;
  /** Sends a request to the control port; a value is sent as JSON, bytes as an archive. */
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** The same for requests that must succeed; returns the data. */
  demand(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<unknown>;
  create(ref: string, request?: Readonly<Record<string, unknown>>, headers?: Readonly<Record<string, string>>): Promise<InstanceRecord>;
  /** Closes the server, deletes its home, and fails if a process or a sandbox is left. Idempotent. */
  close(): Promise<void>;
}

/** A response of the control port. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly success: boolean;
  readonly code: number;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly data: any;
  readonly error?: { readonly code: string; readonly retryable: boolean; readonly requestId: string };
}

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const runner = createRequire(import.meta.url).resolve("@aenv/kit/runner");

/** Projects that tests publish. */
export const projects = {
  echo: join(root, "environments/echo"),
  /** Has the roles white and black. */
  games: join(root, "environments/games"),
  /** Tools that wait, print, crash, count bytes and return their variables. */
  probe: fileURLToPath(new URL("fixtures/probe", import.meta.url)),
  /** Counts with its children, which its config names. */
  nest: fileURLToPath(new URL("fixtures/nest", import.meta.url)),
  /** The one-file style: its state is in its module. */
  tally: fileURLToPath(new URL("fixtures/tally", import.meta.url)),
  /** The agent that the conformance kit of A2A tests. */
  conformanceAgent: fileURLToPath(new URL("fixtures/conformance-agent", import.meta.url)),
  /** Asks models. */
  advisor: fileURLToPath(new URL("fixtures/advisor", import.meta.url)),
  /** Draws random numbers. */
  dice: fileURLToPath(new URL("fixtures/dice", import.meta.url)),
  /** A game of two roles, one after the other. */
  kuhn: fileURLToPath(new URL("fixtures/kuhn", import.meta.url)),
  /** A game of two roles at once. */
  shapes: fileURLToPath(new URL("fixtures/shapes", import.meta.url)),
  /** Tools that run commands in the sandbox of the task. */
  repair: fileURLToPath(new URL("fixtures/repair", import.meta.url)),
  /** The tools of the kit in the sandbox of the task. */
  workshop: fileURLToPath(new URL("fixtures/workshop", import.meta.url)),
  /** Answers a route of the platform with too much. */
  hostile: fileURLToPath(new URL("fixtures/hostile", import.meta.url)),
  /** Serves HTTP and WebSocket on its own port. */
  window: fileURLToPath(new URL("fixtures/window", import.meta.url)),
  /** Answers with bodies that are endless, deep or large, and floods the connection of the platform. */
  attacker: fileURLToPath(new URL("fixtures/attacker", import.meta.url)),
} as const;

/** `await using platform = await startPlatform()`, or `afterAll(() => platform?.close())`. */
export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const home = realpathSync(options.home ?? mkdtempSync(join(tmpdir(), "aenv-platform-")));
  const isOwnHome = options.home === undefined;
  const config = readServerConfig({
    flags: {
      home,
      controlPort: 0,
      dataPort: 0,
      logLevel: "silent",
      poolMin: 0,
      workers: testWorkers,
      store: options.store,
      ...options.flags,
    },
    variables: {},
  });
  let server: RunningServer;
  try {
    server = await startServer({
      config,
      runner: [process.execPath, runner, "--compile-cache", cacheFolder],
      runnerCode,
      worker: testWorker,
      openTrainerServices,
      version: "0.0.0",
      ...(options.engine !== undefined && { engine: options.engine }),
    });
  } catch (error) {
    await clear(home, isOwnHome).catch(() => {});
    throw error;
  }
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= server.close().finally(() => clear(home, isOwnHome));
    return closing;
  };
  const token: Platform["token"] = async (owner, ...roles) => {
    const made = await server.access.tokens.create({ owner, roles });
    return { authorization: `Bearer ${made.token}` };
  };
  return { home, server, token, ...clientOf(server), close, [Symbol.asyncDispose]: close };
}

/** Requests of a test to a server in any process. */
export function clientOf(server: { readonly controlUrl: string; readonly dataUrl: string }) {
  const { controlUrl, dataUrl } = server;
  const ask: Platform["ask"] = async (method, path, body, headers = {}) => {
    const isArchive = body instanceof Uint8Array;
    const type = body === undefined ? {} : { "content-type": isArchive ? "application/gzip" : "application/json" };
    const response = await fetch(controlUrl + path, {
      method,
      headers: { ...type, ...headers },
      ...(body !== undefined && { body: isArchive ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { ...parse(text), status: response.status, headers: response.headers };
  };
  const demand: Platform["demand"] = async (method, path, body, headers) => {
    const answer = await ask(method, path, body, headers);
    if (!answer.success) throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.message}`);
    return answer.data;
  };
  const create: Platform["create"] = async (ref, request = {}, headers = {}) =>
    (await demand("POST", "/env-instance", { envName: ref, ...request }, headers)) as InstanceRecord;
  return { controlUrl, dataUrl, ask, demand, create };
}

export interface PublishOptions extends BundleOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Ports that only the published config lists, so that a port chosen at test time needs no new bundle. */
  readonly ports?: readonly number[];
  /** The same for models, whose endpoints tests start. */
  readonly declaredModels?: DeclaredModels;
}

/** Publishes a project and returns its `name@version`. */
export async function publish(platform: Pick<Platform, "demand">, project: string, options: PublishOptions = {}): Promise<string> {
  const { headers = {}, ports, declaredModels: models, ...rest } = options;
  const { config, digest, bytes } = await bundleOf(project, rest);
  const deployConfig = { ...config.deployConfig, ...(ports !== undefined && { ports }), ...(models !== undefined && { models }) };
  const artifacts = [{ type: "bundle", content: `sha256:${digest}` }];
  await platform.demand("PUT", `/bundle/sha256:${digest}`, bytes, headers);
  await platform.demand("POST", "/env", { ...config, deployConfig, artifacts }, headers);
  return `${config.name}@${config.version}`;
}

/** A free port of 127.0.0.1. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Deletes what is left of a platform, and fails if that is more than its files. */
async function clear(home: string, isOwnHome: boolean): Promise<void> {
  if (!isOwnHome) return;
  const processes = await leftOf(home);
  const sandboxes = readdirSync(home).includes("sandboxes") ? readdirSync(join(home, "sandboxes")) : [];
  endProcesses(processes);
  rmSync(home, { recursive: true, force: true });
  if (processes.length + sandboxes.length === 0) return;
  const commands = processes.map(({ pid, command }) => `\n  ${pid}: ${command}`).join("");
  throw new Error(
    `the closed platform has left ${sandboxes.length} sandboxes (${sandboxes.join(", ")}) and ${processes.length} processes:${commands}`,
  );
}

function parse(text: string): Omit<Answer, "status" | "headers"> {
  try {
    return JSON.parse(text);
  } catch {
    return { success: false, code: 0, message: text, data: text };
  }
}
