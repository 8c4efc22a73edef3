import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { TAR_END, type TarEntry, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";
import type { SetupContext } from "../definition/definition.ts";
import type { TaskProcess, TaskSandbox } from "../definition/sandbox.ts";
import { dataPath } from "../load/load.ts";
import { type ProgramOptions, type ServerPlace, type ServerProgram, Tail } from "./program.ts";

const FOLDER = "/mcp";
const WORKSPACE = `${FOLDER}/workspace`;
const NAME = "task";

/** A sandbox of the episode for its servers: they reach neither this process nor its APIs. */
export async function openSandboxPlace(
  options: ProgramOptions,
  { sandboxes, signal }: Pick<SetupContext, "sandboxes" | "signal">,
): Promise<ServerPlace> {
  const sandbox = await sandboxes.open({ name: NAME, signal, ...(options.image !== undefined && { image: options.image }) });
  await sandbox.files.mkdir(WORKSPACE);
  await sandbox.files.upload(FOLDER, archiveOf(options), { signal });
  return placeIn(sandbox, options);
}

/** The copy of such a sandbox with which a fork begins; null if there is none. */
export function findSandboxPlace(options: ProgramOptions, { sandboxes }: Pick<SetupContext, "sandboxes">): ServerPlace | null {
  const sandbox = sandboxes.find(NAME);
  return sandbox === null ? null : placeIn(sandbox, options);
}

function placeIn(sandbox: TaskSandbox, options: ProgramOptions): ServerPlace {
  const at = (path: string) => posix.join(WORKSPACE, path);
  return {
    workspace: WORKSPACE,
    files: {
      read: (path) => sandbox.files.read(at(path)),
      readText: (path) => sandbox.files.readText(at(path)),
      write: (path, content) => sandbox.files.write(at(path), content),
    },
    canFork: true,
    start: async () => programOf(await sandbox.spawn(options.command, { cwd: WORKSPACE, env: { HOME: FOLDER, ...options.env } })),
    close: () => sandbox.close().catch(() => {}),
  };
}

function programOf(process: TaskProcess): ServerProgram {
  const stderr = new Tail();
  const writer = process.stdin.getWriter();
  void (async () => {
    for await (const bytes of process.stderr) stderr.push(bytes);
  })().catch(() => {});
  return {
    stdout: process.stdout,
    exited: process.exited.then(
      ({ exitCode, signal, interruption }) => interruption ?? (signal === null ? `exit code ${exitCode}` : `signal ${signal}`),
      (error: unknown) => `its sandbox was lost: ${String((error as Error).message)}`,
    ),
    stderrTail: () => stderr.toString(),
    write: (text) => writer.write(Buffer.from(text)),
    close: () => process.close().catch(() => {}),
  };
}

async function* archiveOf({ files, workspace }: ProgramOptions): AsyncGenerator<Uint8Array> {
  for (const path of files) yield* entriesOf(dataPath(path), path);
  if (workspace !== undefined) yield* entriesOf(dataPath(workspace), "workspace");
  yield TAR_END;
}

/** A folder or a file with all that is in it. Links are left out. */
async function* entriesOf(from: string, path: string): AsyncGenerator<Uint8Array> {
  const found = await stat(from);
  if (found.isFile()) {
    yield tarEntryHeader(entry(path, "file", found.size, (found.mode & 0o111) === 0 ? 0o644 : 0o755));
    if (found.size > 0) yield* createReadStream(from, { end: found.size - 1 }) as AsyncIterable<Buffer>;
    yield tarPaddingBytes(found.size);
    return;
  }
  yield tarEntryHeader(entry(`${path}/`, "directory", 0, 0o777));
  for (const one of await readdir(from, { withFileTypes: true }))
    if (one.isFile() || one.isDirectory()) yield* entriesOf(join(from, one.name), `${path}/${one.name}`);
}

function entry(path: string, type: TarEntry["type"], size: number, mode: number): TarEntry {
  return { path, type, linkPath: "", mode, uid: 0, gid: 0, size, mtimeSeconds: 0, major: 0, minor: 0, attributes: {} };
}
