import type { SandboxFile, TaskSandbox } from "@aenv/kit";
import { REPOSITORY } from "../evaluate/attempts.ts";
import { EvaluationError } from "../evaluate/error.ts";
import type { InstanceLog } from "../evaluate/log.ts";
import { type CleanGit, cleanGit } from "../evaluate/task-sandbox.ts";
import { type Change, compareTrees, type TreeFile } from "./compare.ts";
import { makePatch } from "./diff.ts";
import type { ImportedChange, ImportedFile } from "./fast-import.ts";
import { type ChangeRules, refusalOf } from "./rules.ts";

const MAX_FILES = 10_000;
const MAX_BYTES = 64 * 1_024 ** 2;
const MAX_LISTED = 500_000;
const READERS = 8;

export interface TakeOptions {
  /** In which the agent worked. None of its programs are run: they may be the agent's own. */
  readonly agents: TaskSandbox;
  /** From the same image, which the agent never touched. */
  readonly clean: TaskSandbox;
  readonly rules: ChangeRules;
  readonly log: InstanceLog;
}

/**
 * The changes of the agent's repository as a patch against that of the image: what `git add -A && git diff --cached` would show, without
 * asking a program, a setting or the history in the agent's sandbox. Throws an `EvaluationError` if there is too much of it.
 */
export async function takePatch({ agents, clean, rules, log }: TakeOptions): Promise<string> {
  const [before, after] = await Promise.all([listTree(clean), listAgents(agents)]);
  const git = cleanGit(clean);
  const changes = await tracked(git, compareTrees(before, after), log);
  const kept = changes.filter((change) => {
    const refusal = refusalOf(change, rules);
    if (refusal !== null) log.warn(`left out of the patch: ${change.path}: ${refusal}`);
    return refusal === null;
  });
  assertSize(kept);
  const imported = await inGroups(kept, READERS, async ({ path, before, after }): Promise<ImportedChange> => {
    const [old, now] = await Promise.all([readFile(clean, path, before), readFile(agents, path, after)]);
    return { path, before: old, after: now };
  });
  return makePatch(git, imported.filter(isChanged));
}

/** A repository that the agent removed has no files, and one that it has filled is its own fault. */
async function listAgents(sandbox: TaskSandbox): Promise<SandboxFile[]> {
  try {
    return await listTree(sandbox);
  } catch (error) {
    if (isCode(error, "file.")) return [];
    if (isCode(error, "request.invalid")) throw new EvaluationError(`${REPOSITORY} has more than ${MAX_LISTED} files`);
    throw error;
  }
}

function listTree(sandbox: TaskSandbox): Promise<SandboxFile[]> {
  return sandbox.files.list(REPOSITORY, { recursive: true, limit: MAX_LISTED });
}

/** Without files that the repository ignores, and those of other repositories in it. */
async function tracked(git: CleanGit, changes: readonly Change[], log: InstanceLog): Promise<Change[]> {
  const listed = await git.run(["ls-files", "--stage", "-z"], { cwd: REPOSITORY });
  if (listed.exitCode !== 0) throw new Error(`${REPOSITORY} of the image is not a git repository: ${listed.stderr.trim()}`);
  const known = new Set<string>();
  const submodules: string[] = [];
  for (const entry of Buffer.from(listed.stdout).toString("utf8").split("\0")) {
    const path = entry.slice(entry.indexOf("\t") + 1);
    if (entry.startsWith("160000")) submodules.push(`${path}/`);
    else if (entry !== "") known.add(path);
  }
  const own = changes.filter(({ path }) => {
    const isOther = submodules.some((folder) => path.startsWith(folder));
    if (isOther) log.warn(`left out of the patch: ${path}: a file of a submodule`);
    return !isOther;
  });
  const ignored = await ignoredOf(
    git,
    own.flatMap(({ path }) => (known.has(path) ? [] : [path])),
    log,
  );
  return own.filter(({ path }) => !ignored.has(path));
}

async function ignoredOf(git: CleanGit, paths: readonly string[], log: InstanceLog): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const stdin = Buffer.from(paths.map((path) => `${path}\0`).join(""));
  const { exitCode, stdout, stderr } = await git.run(["check-ignore", "-z", "--stdin"], { cwd: REPOSITORY, stdin });
  // Such as a file in a folder that was a link.
  if (exitCode > 1) log.warn(`git does not say which of the new files are ignored: ${stderr.trim()}`);
  return exitCode > 1 ? new Set() : new Set(Buffer.from(stdout).toString("utf8").split("\0"));
}

function assertSize(changes: readonly Change[]): void {
  if (changes.length > MAX_FILES) throw new EvaluationError(`${changes.length} files were changed; a patch may have ${MAX_FILES}`);
  const bytes = changes.reduce((sum, { before, after }) => sum + (before?.size ?? 0) + (after?.size ?? 0), 0);
  if (bytes > MAX_BYTES) throw new EvaluationError(`the changed files have ${bytes} bytes; those of a patch may have ${MAX_BYTES}`);
}

/** Null for a file that is gone: it is the agent's, who may still be changing it. */
async function readFile(sandbox: TaskSandbox, path: string, file: TreeFile | null): Promise<ImportedFile | null> {
  if (file === null) return null;
  if (file.mode === "120000") return { path, mode: file.mode, content: Buffer.from(file.target) };
  if (file.size === 0) return { path, mode: file.mode, content: new Uint8Array() };
  try {
    // A file that grows meanwhile is cut.
    const content = await sandbox.files.read(`${REPOSITORY}/${path}`, { length: file.size });
    return { path, mode: file.mode, content };
  } catch (error) {
    if (isCode(error, "file.")) return null;
    throw error;
  }
}

/** A file that was written anew with the same contents has another time. */
function isChanged({ before, after }: ImportedChange): boolean {
  if (before === null || after === null) return before !== after;
  return before.mode !== after.mode || Buffer.compare(before.content, after.content) !== 0;
}

function isCode(error: unknown, prefix: string): boolean {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return typeof code === "string" && code.startsWith(prefix);
}

async function inGroups<A, B>(items: readonly A[], size: number, work: (item: A) => Promise<B>): Promise<B[]> {
  const done: B[] = [];
  for (let at = 0; at < items.length; at += size) done.push(...(await Promise.all(items.slice(at, at + size).map(work))));
  return done;
}
