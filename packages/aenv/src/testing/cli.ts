import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Files, type Tree, temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { runCli } from "../cli.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";

export const repo = fileURLToPath(new URL("../../../..", import.meta.url));
export const launcher = join(repo, "packages/aenv/bin/aenv.js");

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, without a terminal. */
export async function aenv(
  argv: readonly string[],
  { cwd = "/", env = {} as Terminal["env"], isInteractive = false, stop = new AbortController().signal } = {},
): Promise<Ran> {
  const stdout = memoryOutput();
  const stderr = memoryOutput();
  const terminal: Terminal = { stdout, stderr, cwd, env, isInteractive, stopSignal: () => stop };
  const code = await runCli(argv, terminal);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

/** A terminal whose output is not used. */
export function silentTerminal(columns?: number): Terminal {
  const stopSignal = () => new AbortController().signal;
  return { stdout: memoryOutput(columns), stderr: memoryOutput(columns), cwd: "/", env: {}, isInteractive: false, stopSignal };
}

/** A folder in which `aenvironment` and `zod` can be imported, as after `npm install`. */
export function installedTree(files: Files = {}): Tree {
  const tree = temporaryTree(files);
  symlinkSync(join(repo, "node_modules"), join(tree.path, "node_modules"));
  return tree;
}

function memoryOutput(columns = 100): Output & { text(): string } {
  let written = "";
  return {
    colors: picocolors.createColors(false),
    isTty: false,
    columns,
    write: (text) => {
      written += text;
    },
    text: () => written,
  };
}
