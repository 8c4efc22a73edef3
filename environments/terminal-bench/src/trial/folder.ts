import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import type { SandboxFile } from "./files.ts";

/** Where the files of one pass go: the trial's folder, or the folder of a step. */
export interface OutputFolder {
  readonly path: string;
  readonly agent: string;
  readonly verifier: string;
  readonly artifacts: string;
}

/** Creates the three folders of a pass. */
export async function createOutput(trialFolder: string, step: string | null): Promise<OutputFolder> {
  const path = step === null ? trialFolder : join(trialFolder, "steps", step);
  const output = { path, agent: join(path, "agent"), verifier: join(path, "verifier"), artifacts: join(path, "artifacts") };
  for (const folder of [output.agent, output.verifier, output.artifacts]) await mkdir(folder, { recursive: true });
  return output;
}

/** Writes files of a sandbox below a folder of the host. Paths that leave the folder are refused. */
export async function writeFiles(folder: string, files: readonly SandboxFile[]): Promise<void> {
  for (const { path, content } of files) {
    const relative = normalize(path);
    if (relative.startsWith("..") || relative.startsWith("/")) throw new Error(`a file of the sandbox has the path '${path}'`);
    const target = join(folder, relative);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
}
