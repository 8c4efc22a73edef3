import type { TaskFiles, TaskSandbox } from "@aenv/kit";
import { END_OF_ARCHIVE, headerBytes, padding } from "../tar/header.ts";
import { readTar, type TarPart } from "../tar/read.ts";
import { quoted } from "../trial/shell.ts";
import { type Changes, compareListings, downloadsOf, type Listing } from "./compare.ts";
import { isCompared } from "./rules.ts";

const MAX_FILES = 1_000_000;
/** Paths of one command. */
const BATCH = 200;

/**
 * Gives a sandbox of the image the files that the agent has changed in another one, but for the folders that are kept. Answers what was not
 * taken.
 */
export async function applyChanges(
  agent: TaskSandbox,
  fresh: TaskSandbox,
  taken: readonly string[],
  kept: readonly string[] = [],
): Promise<readonly string[]> {
  const [image, now] = await Promise.all([listTree(fresh.files, kept), listTree(agent.files, kept)]);
  const changes = compareListings(image, now, taken);
  await runScript(fresh, inBatches("rm -rf --", changes.removed));
  if (changes.folders.length + changes.files.length > 0) await fresh.files.upload("/", archiveOf(agent.files, changes, image, now));
  await runScript(fresh, [...linkCommands(changes, now), ...ownerCommands(changes, now)]);
  return changes.leftOut;
}

/** All that is compared. Folders come before their content. */
async function listTree(files: TaskFiles, kept: readonly string[]): Promise<Listing> {
  const found = new Map<string, Awaited<ReturnType<TaskFiles["list"]>>[number]>();
  for (const top of await files.list("/")) {
    const path = `/${top.path}`;
    if (!isCompared(path, kept)) continue;
    found.set(path, top);
    if (top.type !== "directory") continue;
    const inner = (await files.list(path, { recursive: true, limit: MAX_FILES })).map((file) => ({ path: `${path}/${file.path}`, file }));
    for (const { path: full, file } of inner.sort((a, b) => (a.path < b.path ? -1 : 1))) if (isCompared(full, kept)) found.set(full, file);
  }
  return found;
}

/** One archive with all changed folders and files; each path is one that was decided on, whatever the agent's sandbox sends. */
async function* archiveOf(files: TaskFiles, changes: Changes, image: Listing, now: Listing): AsyncGenerator<Uint8Array> {
  const entry = (path: string) => ({ path: path.slice(1), mode: now.get(path)?.mode ?? 0o755, modifiedSec: 0, size: 0, target: "" });
  for (const path of changes.folders) yield headerBytes({ ...entry(path), type: "directory" });
  const wanted = new Set(changes.files);
  for (const { path, isFolder } of downloadsOf(changes.files, image)) {
    for await (const part of partsOf(files, path)) {
      const full = isFolder ? `${path}/${part.path}` : path;
      if (part.type !== "file" || !wanted.delete(full)) continue;
      yield headerBytes({ ...entry(full), type: "file", size: part.size, modifiedSec: part.modifiedSec });
      yield* part.content;
      yield padding(part.size);
    }
  }
  yield END_OF_ARCHIVE;
}

/** Nothing, if the path was removed meanwhile. */
async function* partsOf(files: TaskFiles, path: string): AsyncGenerator<TarPart> {
  try {
    yield* readTar(await files.download(path));
  } catch (error) {
    if ((error as { code?: string }).code !== "file.not_found") throw error;
  }
}

function linkCommands({ links }: Changes, now: Listing): string[] {
  return links.map((path) => `ln -sfn -- ${quoted(now.get(path)?.target ?? "")} ${quoted(path)}`);
}

/** What was uploaded belongs to root. */
function ownerCommands({ folders, files, links }: Changes, now: Listing): string[] {
  const byOwner = new Map<string, string[]>();
  for (const path of [...folders, ...files, ...links]) {
    const { uid = 0, gid = 0 } = now.get(path) ?? {};
    const owned = byOwner.get(`${uid}:${gid}`) ?? [];
    owned.push(path);
    byOwner.set(`${uid}:${gid}`, owned);
  }
  // A folder that exists may have had another owner.
  return [...byOwner].flatMap(([owner, paths]) => inBatches(`chown -h ${owner} --`, paths));
}

function inBatches(command: string, paths: readonly string[]): string[] {
  const commands: string[] = [];
  for (let at = 0; at < paths.length; at += BATCH)
    commands.push(
      `${command} ${paths
        .slice(at, at + BATCH)
        .map(quoted)
        .join(" ")}`,
    );
  return commands;
}

/** Runs commands with the programs of the image. One that fails is an error: the verifier would see other files than the agent. */
async function runScript(sandbox: TaskSandbox, commands: readonly string[]): Promise<void> {
  if (commands.length === 0) return;
  const { exitCode, stderr } = await sandbox.exec(["sh", "-s"], { user: "root", cwd: "/", stdin: `set -e\n${commands.join("\n")}\n` });
  if (exitCode !== 0) throw new Error(`the agent's files could not be copied into the verifier's sandbox: ${stderr.trim().slice(-400)}`);
}
