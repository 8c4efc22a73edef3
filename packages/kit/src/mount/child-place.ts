import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf, PlatformError, readBoundedBytes } from "@aenv/contract";
import { dataPath } from "../load/load.ts";
import { type ProgramOptions, type ServerPlace, type ServerProgram, Tail, type WorkspaceFiles } from "./program.ts";

/** Time for a server to end by itself when its input is closed, and then after SIGTERM. */
const CLOSE_MS = 1_000;
const MAX_FILE_BYTES = 16 * 1_024 ** 2;

/** A folder of its own for the servers of an episode, which are children of this process. Nothing isolates them from it. */
export async function openChildPlace(options: ProgramOptions): Promise<ServerPlace> {
  const { cp, mkdir, mkdtemp, realpath, rm } = await import("node:fs/promises");
  const { COPYFILE_FICLONE } = (await import("node:fs")).constants;
  const { tmpdir } = await import("node:os");
  const folder = await realpath(await mkdtemp(join(tmpdir(), "aenv-mcp-")));
  const workspace = join(folder, "workspace");
  const remove = () => rm(folder, { recursive: true, force: true }).catch(() => {});
  try {
    const copy = (from: string, to: string) => cp(dataPath(from), to, { recursive: true, mode: COPYFILE_FICLONE, verbatimSymlinks: true });
    for (const path of options.files) await copy(path, join(folder, path));
    await mkdir(workspace, { recursive: true });
    if (options.workspace !== undefined) await copy(options.workspace, workspace);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    workspace,
    files: childFiles(workspace),
    canFork: false,
    start: () => startChild(options, folder, workspace),
    close: remove,
  };
}

export function rootUrlOf(workspace: string): string {
  return pathToFileURL(workspace).href;
}

async function startChild({ command, env }: ProgramOptions, folder: string, cwd: string): Promise<ServerProgram> {
  const { spawn } = await import("node:child_process");
  const [file = "", ...args] = command;
  // A process group of its own, so that its children end with it.
  const child = spawn(file === "node" ? process.execPath : file, args, {
    cwd,
    env: { ...inherited(), HOME: folder, TMPDIR: folder, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`it could not be started: ${messageOf(error)}`));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" ? `there is no program '${file}' here` : messageOf(error);
      reject(new PlatformError("sandbox.start_failed", `the MCP server could not be started: ${why}`, { retryable: false }));
    });
  });
  const stderr = new Tail();
  child.stderr.on("data", (bytes: Uint8Array) => stderr.push(bytes));
  // A write to a server that has ended is reported by its exit.
  child.stdin.on("error", () => {});
  return {
    stdout: child.stdout,
    exited,
    stderrTail: () => stderr.toString(),
    write: (text) => new Promise((resolve, reject) => child.stdin.write(text, (error) => (error ? reject(error) : resolve()))),
    close: () => endChild(child, exited),
  };
}

/** No secret of this process reaches the server, but the mark by which the platform finds its processes does. */
function inherited(): Record<string, string> {
  const { PATH, LANG, AENV_SANDBOX } = process.env;
  return {
    ...(PATH !== undefined && { PATH }),
    ...(LANG !== undefined && { LANG }),
    ...(AENV_SANDBOX !== undefined && { AENV_SANDBOX }),
  };
}

async function endChild(child: ChildProcess, exited: Promise<string>): Promise<void> {
  const within = (ms: number) => {
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(late.resolve, ms, false);
    return Promise.race([exited.then(() => true), late.promise]).finally(() => clearTimeout(timer));
  };
  child.stdin?.end();
  child.stdout?.resume();
  if (!(await within(CLOSE_MS))) {
    killGroup(child, "SIGTERM");
    await within(CLOSE_MS);
  }
  // Also after it has ended: its children may still run.
  killGroup(child, "SIGKILL");
  await exited;
  child.stdout?.destroy();
  child.stderr?.destroy();
}

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // No process of the group is left.
  }
}

function childFiles(workspace: string): WorkspaceFiles {
  const at = (path: string) => join(workspace, path);
  const read = async (path: string) => {
    const { createReadStream } = await import("node:fs");
    return readBoundedBytes(createReadStream(at(path)), { maxBytes: MAX_FILE_BYTES });
  };
  return {
    read,
    readText: async (path) => new TextDecoder().decode(await read(path)),
    write: async (path, content) => {
      const { mkdir, writeFile } = await import("node:fs/promises");
      await mkdir(join(at(path), ".."), { recursive: true });
      await writeFile(at(path), content);
    },
  };
}
