import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, TAR_BLOCK, tarPadding, writeTarHeader } from "@aenv/contract";
import { AgentError } from "../player/failure.ts";

/** A folder as a tar archive. Links are followed. */
export async function* archiveOf(folder: string): AsyncGenerator<Uint8Array> {
  for (const path of pathsIn(folder)) {
    const bytes = await readFile(join(folder, path));
    const isExecutable = (statSync(join(folder, path)).mode & 0o111) !== 0;
    yield writeTarHeader({ path, size: bytes.length, isExecutable });
    yield bytes;
    yield new Uint8Array(tarPadding(bytes.length));
  }
  yield new Uint8Array(2 * TAR_BLOCK);
}

/** Equal names and contents give equal digests. */
export function digestOfFolder(folder: string): string {
  const hash = createHash("sha256");
  for (const path of pathsIn(folder)) {
    const bytes = readFileSync(join(folder, path));
    hash.update(`${path}\n${bytes.length}\n`).update(bytes);
  }
  return `sha256:${hash.digest("hex")}`;
}

/** The files in a folder and its folders, in the order of their names. */
function pathsIn(folder: string): string[] {
  try {
    const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return paths.filter((path) => statSync(join(folder, path)).isFile()).sort();
  } catch (cause) {
    throw new AgentError(`the folder ${folder} of the agent cannot be read: ${messageOf(cause)}`, { cause });
  }
}
