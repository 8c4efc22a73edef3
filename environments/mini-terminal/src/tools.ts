import { mkdir, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type CallContext, tool } from "aenvironment";
import * as z from "zod";
import type { Episode } from "./episode.ts";
import { linesOf } from "./files/lines.ts";
import { listFolder } from "./files/list.ts";
import { named, pathIn } from "./files/paths.ts";
import { replaceText } from "./files/replace.ts";
import { readText } from "./files/text-file.ts";
import type { CommandResult } from "./shell/session.ts";
import { MAIN_SESSION } from "./shell/terminal.ts";

const MAX_TIMEOUT_SECONDS = 24 * 60 * 60;
const MAX_READ_CHARACTERS = 64 * 1024;
const MAX_LISTED = 1_000;

const path = z.string().min(1).describe("Relative to the working folder, or absolute");

/** The result of `execute_command`: the two fields of the original, and more. */
export interface ExecuteResult {
  /** The output, and whether the command has ended by itself. */
  readonly output: readonly [text: string, hasFinished: boolean];
  readonly returncode: number;
  readonly exit_code: number;
  readonly timed_out: boolean;
  readonly duration_ms: number;
  readonly cut_bytes?: number;
  readonly note?: string;
}

export const executeCommand = tool({
  name: "execute_command",
  description:
    "Runs a command in a bash session that stays open: the current folder, variables, functions and background processes are kept. Returns standard output and standard error together, and the exit code. Standard input is empty. A command that takes longer than the timeout is interrupted, and its output so far is returned.",
  input: z.object({
    command: z
      .string()
      .refine((text) => !text.includes("\0"), "must not contain a NUL character")
      .describe("Any bash code, also of several lines"),
    timeout: z.number().positive().max(MAX_TIMEOUT_SECONDS).default(60).describe("In seconds"),
    session: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,32}$/, "must be 1 to 32 letters, digits, '-' or '_'")
      .default(MAIN_SESSION)
      .describe("Commands of one session run one after the other; those of different sessions run at the same time"),
  }),
  run: async ({ command, timeout, session }, { state, signal }: CallContext<Episode>) =>
    toExecuteResult(await state.terminal.run(command, { timeoutMs: timeout * 1_000, session, signal })),
});

function toExecuteResult({ output, cutBytes, exitCode, hasTimedOut, durationMs, note }: CommandResult): ExecuteResult {
  return {
    output: [output, !hasTimedOut],
    returncode: exitCode,
    exit_code: exitCode,
    timed_out: hasTimedOut,
    duration_ms: durationMs,
    ...(cutBytes > 0 && { cut_bytes: cutBytes }),
    ...(note !== null && { note }),
  };
}

export const readFileTool = tool({
  name: "read_file",
  description: "Reads a text file, or some lines of it. A long file is returned in parts: go on after last_line.",
  input: z.object({
    path,
    first_line: z.number().int().min(1).default(1).describe("The first line to return, counted from 1"),
    lines: z.number().int().min(1).default(2_000).describe("How many lines to return at most"),
  }),
  annotations: { readOnlyHint: true },
  run: async ({ path, first_line, lines }, { state }: CallContext<Episode>) =>
    linesOf(await readText(pathIn(state.terminal.workFolder, path), path), first_line, lines, MAX_READ_CHARACTERS),
});

export const writeFileTool = tool({
  name: "write_file",
  description: "Writes a text to a file and replaces what was there. Folders that do not exist are created.",
  input: z.object({ path, content: z.string() }),
  run: async ({ path, content }, { state }: CallContext<Episode>) => {
    const target = pathIn(state.terminal.workFolder, path);
    return named(path, async () => {
      const before = await stat(target).catch(() => null);
      if (before?.isFile() === false) throw new Error(`'${path}' is ${before.isDirectory() ? "a folder" : "not a regular file"}`);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, content);
      return { path, bytes: Buffer.byteLength(content), created: before === null };
    });
  },
});

export const editFileTool = tool({
  name: "edit_file",
  description: "Replaces an exact text in a file. The text must occur exactly once, unless replace_all is true.",
  input: z.object({
    path,
    old_text: z.string().min(1).describe("The text to replace, with its spaces and line breaks"),
    new_text: z.string(),
    replace_all: z.boolean().default(false),
  }),
  run: async ({ path, old_text, new_text, replace_all }, { state }: CallContext<Episode>) => {
    const target = pathIn(state.terminal.workFolder, path);
    const before = await readText(target, path);
    const { text, count } = replaceText(before, { oldText: old_text, newText: new_text, isEverywhere: replace_all });
    await named(path, () => writeFile(target, text));
    return { path, replaced: count };
  },
});

export const listFilesTool = tool({
  name: "list_files",
  description: "Lists a folder: files with their sizes, folders and links, sorted by name.",
  input: z.object({
    path: path.default("."),
    depth: z.number().int().min(1).max(20).default(1).describe("1 lists only the folder itself; more includes folders inside of it"),
  }),
  annotations: { readOnlyHint: true },
  run: ({ path, depth }, { state }: CallContext<Episode>) => listFolder(pathIn(state.terminal.workFolder, path), path, depth, MAX_LISTED),
});
