import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "@aenv/contract";
import { describeMcpServer, type McpCommandOptions, type McpOffer, setDataRoot } from "@aenv/kit";
import { Failure } from "../terminal/failure.ts";
import { bundleServer, copyInstalled, hasNativeModules, type InstalledServer, installFromNpm, localServer } from "./npm-server.ts";
import { installFromPypi } from "./python-server.ts";
import type { ProgramRun } from "./run-program.ts";
import type { ServerCommand } from "./server-command.ts";

/** A server that lies in a project and was started once. */
export interface PreparedServer {
  readonly name: string;
  readonly version: string;
  readonly options: Pick<McpCommandOptions, "command" | "env" | "image">;
  readonly offer: McpOffer;
  /** What `buildConfig.data` lists. */
  readonly data: readonly string[];
  /** How it was installed, in words. */
  readonly form: string;
}

export interface PrepareOptions {
  readonly server: ServerCommand;
  /** The folder of the project. */
  readonly root: string;
  /** A folder for what is not part of the project. */
  readonly scratch: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The values of the variables that `env` refers to. */
  readonly variables: Readonly<Record<string, string>>;
  readonly image: string | undefined;
  /** Ships the installed folder instead of one file. */
  readonly keepsFolder: boolean;
  /** How programs of this machine are run. */
  readonly run: Pick<ProgramRun, "env" | "signal">;
  /** Runs a step that takes long, and shows its name meanwhile. */
  step<T>(label: string, work: () => Promise<T>): Promise<T>;
}

const VENDOR = "vendor";

/** Installs a server below `vendor` of the project, starts it, and reads what it offers. */
export async function prepareServer(options: PrepareOptions): Promise<PreparedServer> {
  return options.server.kind === "pypi" ? preparePython(options, options.server) : prepareJavaScript(options, options.server);
}

async function preparePython(options: PrepareOptions, server: Extract<ServerCommand, { kind: "pypi" }>): Promise<PreparedServer> {
  const { root, run, step, image } = options;
  const { name, version, python, command } = await step(`Installing ${server.spec}`, () =>
    installFromPypi(server, join(root, VENDOR, "python"), run),
  );
  const env = { PYTHONPATH: "../vendor/python", PYTHONDONTWRITEBYTECODE: "1", ...options.env };
  const started = { command, env, image: image ?? `python:${python}-slim` };
  const offer = await step(`Starting ${name} to read its tools`, () => describe(options, root, started));
  return { name, version, options: started, offer, data: [VENDOR], form: `packages of Python ${python} in vendor/python` };
}

async function prepareJavaScript(options: PrepareOptions, server: Exclude<ServerCommand, { kind: "pypi" }>): Promise<PreparedServer> {
  const { root, scratch, cwd, run, step, env, image, keepsFolder } = options;
  const installed =
    server.kind === "file"
      ? localServer(server.file, cwd)
      : await step(`Installing ${server.spec}`, () => installFromNpm(server, join(scratch, "installed"), run));
  const { name, version } = installed;
  const from = (command: readonly string[]) => ({ command, env, ...(image !== undefined && { image }) });
  const bundled = from(["node", "../vendor/server.mjs", ...server.args]);
  const asFile = { name, version, options: bundled, data: [VENDOR], form: "one file, vendor/server.mjs" };
  if (installed.folder === null) {
    await step(`Bundling ${name}`, () => bundle(installed, root));
    return { ...asFile, offer: await step(`Starting ${name} to read its tools`, () => describe(options, root, bundled)) };
  }
  // The installed folder is what the bundle is compared with.
  const whole = join(scratch, "whole");
  const entry = copyInstalled(installed, join(whole, VENDOR));
  const inFolder = from(["node", `../vendor/${entry}`, ...server.args]);
  const offer = await step(`Starting ${name} to read its tools`, () => describe(options, whole, inFolder));
  const why = keepsFolder
    ? "as asked for"
    : hasNativeModules(installed)
      ? "it has compiled modules"
      : await step(`Bundling ${name}`, () => bundleProblem(options, installed, bundled, offer));
  if (why === null) return { ...asFile, offer };
  rmSync(join(root, VENDOR), { recursive: true, force: true });
  copyInstalled(installed, join(root, VENDOR));
  return { name, version, options: inFolder, offer, data: [`${VENDOR}/node_modules`], form: `the installed folder: ${why}` };
}

async function bundle(installed: InstalledServer, root: string): Promise<void> {
  mkdirSync(join(root, VENDOR), { recursive: true });
  await bundleServer(installed, join(root, VENDOR, "server.mjs"));
}

/** Why the bundle cannot stand for the installed folder; null if it offers the same. */
async function bundleProblem(
  options: PrepareOptions,
  installed: InstalledServer,
  started: PreparedServer["options"],
  offer: McpOffer,
): Promise<string | null> {
  try {
    await bundle(installed, options.root);
    const offered = await describe(options, options.root, started);
    return isDeepStrictEqual(offered, offer) ? null : "as one file, it offers something else";
  } catch (error) {
    options.run.signal.throwIfAborted();
    return `as one file, it does not start (${messageOf(error).split("\n")[0]?.slice(0, 200)})`;
  }
}

async function describe(
  { variables, run: { signal } }: PrepareOptions,
  root: string,
  started: PreparedServer["options"],
): Promise<McpOffer> {
  setDataRoot(root);
  try {
    return await describeMcpServer(started, variables, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new Failure(messageOf(error), {
      hint: "It runs with no variables but PATH and those of --env and --secret, in an empty folder. Arguments are relative to that folder.",
      cause: error,
    });
  }
}
