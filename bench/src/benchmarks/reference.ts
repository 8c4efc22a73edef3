import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { GeneratedLog } from "./logs.ts";

const SCRIPT = fileURLToPath(new URL("./reference.py", import.meta.url));

/** How long a parser took, and a digest of its results. */
export interface ParserTime {
  readonly parser: string;
  readonly seconds: number;
  readonly digest: string;
}

/** The Python package `swebench`, if this machine has it. */
export interface Reference {
  parse(logs: readonly GeneratedLog[]): Promise<readonly ParserTime[]>;
}

/** The reference, or why there is none. */
export async function findReference(python = process.env.AENV_SWEBENCH_PYTHON ?? ""): Promise<Reference | string> {
  if (python === "") return "AENV_SWEBENCH_PYTHON names no Python that has the package swebench";
  try {
    await run(python, [SCRIPT]);
  } catch (error) {
    const problem = String((error as { stderr?: string }).stderr || error).trim();
    return `${python} cannot load swebench: ${problem.split("\n").at(-1)}`;
  }
  return { parse: (logs) => parseWith(python, logs) };
}

async function parseWith(python: string, logs: readonly GeneratedLog[]): Promise<readonly ParserTime[]> {
  const folder = await mkdtemp(join(tmpdir(), "aenv-bench-"));
  try {
    const file = join(folder, "logs.json");
    await writeFile(file, JSON.stringify(logs));
    const { stdout } = await run(python, [SCRIPT, file]);
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const run = promisify(execFile);
