import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { PlatformError } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import { type InitConnection, type LaunchOptions, openConnection } from "../init/connection.ts";
import { initKeyArgument } from "../init/key.ts";
import type { ProcessOutput } from "../init/process.ts";
import { initProgram } from "../init/program.ts";
import { identityNow, openProcessTable, type ProcessIdentity } from "./process-table.ts";

/** Where programs of the machine are looked up. No other variable of this process, which may be a secret, reaches them. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface Launch {
  readonly argv: readonly string[];
  readonly input?: string;
  readonly cwd?: string;
  /** Output is appended to this file. The program may leave processes behind that keep it open. */
  readonly outputPath?: string;
  /** Kills the program and its group. */
  readonly signal?: AbortSignal;
  readonly options?: LaunchOptions | undefined;
  /** A variable of the program and of all that it starts, `NAME=value`, by which they are found. */
  readonly mark?: string | undefined;
}

interface Launcher {
  readonly connection: InitConnection;
  readonly socket: Socket;
  /** Programs that run now. */
  running: number;
}

/** A variable of launchers, which the programs do not get: whose launcher it is. */
const LAUNCHER_OF = "AENV_LAUNCHER_OF";
const START_MS = 10_000;
const END_MS = 20_000;
const processTable = openProcessTable();

let opened: Promise<Launcher> | undefined;

/**
 * Runs a program of this machine to its end, through a small process of our own: this process may have much memory, and then a fork of it
 * stops it for many milliseconds. The launcher ends with this process, and kills programs that still run
 * before it ends: see `waitForLaunchers`. Processes that they left behind, such as containers, go on.
 */
export async function launch({ argv, input, cwd = "/", outputPath, signal, options = {}, mark }: Launch): Promise<ProcessOutput> {
  using launcher = await use();
  const kill = () => void started?.then(({ id }) => launcher.connection.signal(id, "SIGKILL", { group: true })).catch(() => undefined);
  const [name = "", value = ""] = mark?.split("=") ?? [];
  const env = { PATH: SYSTEM_PATH, ...(name !== "" && { [name]: value }) };
  const stdin = input !== undefined;
  const started = launcher.connection.launch({ argv, env, cwd, stdin, ...(outputPath !== undefined && { outputPath }) }, options);
  signal?.addEventListener("abort", kill);
  try {
    const program = await started;
    if (signal?.aborted) kill();
    // A program that ends before it has read its input is reported by its exit code.
    program.stdin.on("error", () => undefined);
    if (input !== undefined) program.stdin.end(input);
    return await program.output();
  } finally {
    signal?.removeEventListener("abort", kill);
  }
}

/** Has the launcher mount the root of a sandbox, or exchange it. Throws an `InitError`. */
export async function mountByLauncher(request: "mount_root" | "restack_root", parameters: object, signal: AbortSignal): Promise<void> {
  using launcher = await use();
  await launcher.connection.mount(request, parameters, signal);
}

/**
 * Waits until the launchers of processes that have ended are gone, and with them programs that would still create something. After that,
 * what such a process has left can be removed, and does not appear again.
 */
export async function waitForLaunchers(ended: readonly ProcessIdentity[]): Promise<void> {
  const deadline = Date.now() + END_MS;
  for (const owner of ended) {
    while ((await processTable.findMarked(`${LAUNCHER_OF}=${markOf(owner)}`)).length > 0) {
      if (Date.now() > deadline)
        throw new PlatformError(
          "internal",
          `programs that process ${owner.pid} has started do not end, although it has ended; kill its launcher`,
        );
      await pause(10);
    }
  }
}

/** The launcher, which keeps this process from ending until it is disposed of. A process that waits for nothing else may end. */
async function use(): Promise<Pick<Launcher, "connection"> & Disposable> {
  const launcher = await open();
  if (launcher.running++ === 0) launcher.socket.ref();
  return {
    connection: launcher.connection,
    [Symbol.dispose]: () => {
      if (--launcher.running === 0) launcher.socket.unref();
    },
  };
}

function markOf({ pid, start }: ProcessIdentity): string {
  return `${pid}_${start}`;
}

function open(): Promise<Launcher> {
  opened ??= start().catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

async function start(): Promise<Launcher> {
  const program = await initProgram(process.arch as Architecture);
  const { privateKey } = generateKeyPairSync("ed25519");
  const args = ["--listen", "fd:3", "--key", initKeyArgument(privateKey)];
  // A session of its own: the end of a terminal is for this process, which still needs the launcher to clean up.
  const child = spawn(program, args, {
    cwd: "/",
    env: { PATH: SYSTEM_PATH, [LAUNCHER_OF]: markOf(identityNow(processTable, process.pid)) },
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  const socket = child.stdio[3] as Socket;
  const connection = await Promise.race([openConnection(socket, privateKey, AbortSignal.timeout(START_MS)), failed]);
  // The next program starts another one.
  void connection.closed.then(() => {
    opened = undefined;
  });
  child.unref();
  socket.unref();
  return { connection, socket, running: 0 };
}
