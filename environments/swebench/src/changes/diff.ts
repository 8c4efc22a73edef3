import { randomUUID } from "node:crypto";
import { decodeStrict } from "@aenv/benchmark";
import { EvaluationError } from "../evaluate/error.ts";
import type { CleanGit } from "../evaluate/task-sandbox.ts";
import { type ImportedChange, importStream } from "./fast-import.ts";

const DIFF = ["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
const PREFIXES = ["--src-prefix=a/", "--dst-prefix=b/"];

/**
 * The patch of some changes, made with the git of a sandbox that the agent never touched, in a repository of its own: no attributes,
 * filters or settings of the agent's files are used, and its files are not written.
 */
export async function makePatch(git: CleanGit, changes: readonly ImportedChange[]): Promise<string> {
  const isText = ({ before, after }: ImportedChange) => [before, after].every((file) => file === null || isUtf8(file.content));
  // A patch is text: files that are not UTF-8 are written as binary ones.
  return (
    (await patchOf(git, changes.filter(isText), null)) +
    (await patchOf(
      git,
      changes.filter((one) => !isText(one)),
      "* -diff\n",
    ))
  );
}

async function patchOf(git: CleanGit, changes: readonly ImportedChange[], attributes: string | null): Promise<string> {
  if (changes.length === 0) return "";
  const folder = `/tmp/patch-${randomUUID()}.git`;
  const run = async (args: readonly string[], stdin?: Uint8Array) => {
    const { exitCode, stdout, stderr } = await git.run(args, stdin === undefined ? {} : { stdin });
    if (exitCode !== 0) throw new EvaluationError(`the changes cannot be written as a patch: git ${args.join(" ")}: ${stderr.trim()}`);
    return stdout;
  };
  try {
    await run(["init", "--quiet", "--bare", folder]);
    if (attributes !== null) await git.write(`${folder}/info/attributes`, Buffer.from(attributes));
    await run(["-C", folder, "fast-import", "--quiet", "--done"], importStream(changes));
    return decodeStrict(await run(["-C", folder, ...DIFF, ...PREFIXES, "before", "after"]), "the patch");
  } finally {
    await git.remove(folder);
  }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    decodeStrict(bytes, "a file");
    return true;
  } catch {
    return false;
  }
}
