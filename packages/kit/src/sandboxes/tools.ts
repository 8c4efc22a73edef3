import { posix } from "node:path";
import * as z from "zod";
import { type CallContext, type ToolDefinition, tool } from "../definition/definition.ts";
import type { TaskExecOptions } from "../definition/sandbox.ts";
import { commandText, linesText, replaceText } from "./tool-text.ts";

type MaybePromise<T> = T | Promise<T>;
/** A value, or a function of the call that gives it; undefined stands for the default. */
export type SandboxToolSetting<T, State> = T | ((context: CallContext<State>) => MaybePromise<T | undefined>);

export interface SandboxToolOptions<State = unknown> {
  /** The working folder of commands, where relative paths begin; by default that of the image. */
  readonly cwd?: SandboxToolSetting<string, State>;
  /** Who runs commands, and reads and writes files; by default the user of the image. */
  readonly user?: SandboxToolSetting<string, State>;
  /** Further variables of commands. */
  readonly env?: SandboxToolSetting<Readonly<Record<string, string>>, State>;
  /** The timeout of a command whose call names none, and of each file tool; two minutes by default. */
  readonly timeoutMs?: SandboxToolSetting<number, State>;
  /** Runs commands in a login shell, which reads the profile of the image and may replace its PATH. */
  readonly login?: boolean;
}

const TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_SECONDS = 24 * 60 * 60;
const MAX_FILE_BYTES = 16 * 1_024 ** 2;
const MAX_LISTED = 1_000;

/** Both outputs together, in the order in which they are written. An image without bash has sh. */
const shellCommand = (flags: string) =>
  `if command -v bash >/dev/null 2>&1; then exec bash ${flags} "$1" 2>&1; else exec sh ${flags} "$1" 2>&1; fi`;
// Scripts, and not the files of the sandbox as the platform sees them, so that the permissions of the user hold for all tools alike.
const READ = `
  if [ -d "$1" ]; then echo "'$1' is a folder; list it with list_files" >&2; exit 1; fi
  if [ -e "$1" ] && [ ! -f "$1" ]; then echo "'$1' is not a regular file; read it with bash" >&2; exit 1; fi
  if [ ! -e "$1" ]; then echo "'$1' does not exist" >&2; exit 1; fi
  exec cat -- "$1"`;
const WRITE = `
  if [ -d "$1" ]; then echo "'$1' is a folder" >&2; exit 1; fi
  if [ -e "$1" ] && [ ! -f "$1" ]; then echo "'$1' is not a regular file" >&2; exit 1; fi
  mkdir -p -- "$(dirname -- "$1")" && cat > "$1"`;
const LIST = `
  if [ ! -d "$1" ]; then echo "'$1' is not a folder" >&2; exit 1; fi
  cd -- "$1" && find . -mindepth 1 -maxdepth "$2" \\( -type d -exec printf '%s/\\n' {} + -o -print \\)`;

const path = z
  .string()
  .min(1)
  .refine((text) => !text.includes("\0"), "must not contain a NUL character")
  .describe("Relative to the working folder, or absolute");

/**
 * Tools over the sandbox of the episode's task: `bash`, `read_file`, `write_file`, `edit_file` and `list_files`.
 *
 * @example
 * defineEnvironment({ tools: [...sandboxTools({ cwd: "/repo" })] });
 */
// biome-ignore lint/suspicious/noExplicitAny: the tools fit an environment with any state, and check their own input
export function sandboxTools<State = any>(options: SandboxToolOptions<State> = {}): readonly ToolDefinition<State, any>[] {
  const shell = shellCommand(options.login === true ? "-lc" : "-c");
  const run = async (context: CallContext<State>, argv: readonly string[], more: TaskExecOptions = {}) => {
    const settings = await settingsFor(options, context);
    const timeoutMs = more.timeoutMs ?? settings.timeoutMs;
    return { ...(await context.sandbox.exec([...argv], { ...settings, ...more, timeoutMs })), timeoutMs };
  };
  /** The output of a script on a file; an error if it failed. */
  const script = async (context: CallContext<State>, text: string, args: readonly string[], more: TaskExecOptions = {}) => {
    const result = await run(context, ["sh", "-c", text, "sh", ...args], more);
    if (result.exitCode === 0) return result;
    const timeout = `it took longer than ${result.timeoutMs / 1_000} s`;
    throw new Error(result.timedOut ? timeout : result.stderr.trim() || `the command for it ended with exit code ${result.exitCode}`);
  };
  const readText = async (context: CallContext<State>, file: string) => {
    const { stdout, droppedBytes } = await script(context, READ, [operand(file)], { maxOutputBytes: MAX_FILE_BYTES });
    if (droppedBytes > 0) throw new Error(`'${file}' has more than ${MAX_FILE_BYTES} bytes; read a part with bash, such as head or sed -n`);
    return stdout;
  };

  return [
    tool({
      name: "bash",
      description:
        "Runs a command in a new bash in the working folder, and returns standard output and standard error together, and the exit code. The current folder and variables are not kept for the next call; files and background processes are. Standard input is empty. Of long output, the beginning and the end are returned.",
      input: z.object({
        command: z
          .string()
          .refine((text) => !text.includes("\0"), "must not contain a NUL character")
          .describe("Any bash code, also of several lines"),
        timeout: z.number().positive().max(MAX_TIMEOUT_SECONDS).optional().describe("In seconds; a command that takes longer is ended"),
      }),
      run: async ({ command, timeout }, context: CallContext<State>) => {
        const more = timeout === undefined ? {} : { timeoutMs: timeout * 1_000 };
        const { timeoutMs, ...result } = await run(context, ["sh", "-c", shell, "sh", command], more);
        return commandText(result, timeoutMs);
      },
    }),
    tool({
      name: "read_file",
      description: "Reads a text file, or some lines of it. A long file is returned in parts.",
      input: z.object({
        path,
        first_line: z.number().int().min(1).default(1).describe("The first line to return, counted from 1"),
        lines: z.number().int().min(1).default(2_000).describe("How many lines to return at most"),
      }),
      annotations: { readOnlyHint: true },
      run: async ({ path, first_line, lines }, context: CallContext<State>) => linesText(await readText(context, path), first_line, lines),
    }),
    tool({
      name: "write_file",
      description: "Writes a text to a file and replaces what was there. Folders that do not exist are created.",
      input: z.object({ path, content: z.string() }),
      run: async ({ path, content }, context: CallContext<State>) => {
        await script(context, WRITE, [operand(path)], { stdin: content });
        return `Wrote ${Buffer.byteLength(content)} bytes to '${path}'.`;
      },
    }),
    tool({
      name: "edit_file",
      description: "Replaces an exact text in a file. The text must occur exactly once, unless replace_all is true.",
      input: z.object({
        path,
        old_text: z.string().min(1).describe("The text to replace, with its spaces and line breaks"),
        new_text: z.string(),
        replace_all: z.boolean().default(false),
      }),
      run: async ({ path, old_text, new_text, replace_all }, context: CallContext<State>) => {
        const before = await readText(context, path);
        // The output of a command is decoded: writing this text back would change the bytes.
        if (before.includes("\uFFFD")) throw new Error(`'${path}' is not UTF-8 text; change it with bash, such as sed -i`);
        const { text, count } = replaceText(before, old_text, new_text, replace_all);
        await script(context, WRITE, [operand(path)], { stdin: text });
        return `Replaced ${count} ${count === 1 ? "occurrence" : "occurrences"} in '${path}'.`;
      },
    }),
    tool({
      name: "list_files",
      description: "Lists a folder, sorted by name; the names of folders end with '/'.",
      input: z.object({
        path: path.default("."),
        depth: z.number().int().min(1).max(20).default(1).describe("1 lists only the folder itself; more includes folders inside of it"),
      }),
      annotations: { readOnlyHint: true },
      run: async ({ path, depth }, context: CallContext<State>) => {
        const { stdout, droppedBytes } = await script(context, LIST, [operand(path), String(depth)]);
        const names = stdout.split("\n").filter((line) => line.startsWith("./"));
        const shown = names.map((name) => name.slice(2)).sort();
        if (shown.length === 0) return "[the folder is empty]";
        const isCut = shown.length > MAX_LISTED || droppedBytes > 0;
        const more = isCut ? `\n[... only ${Math.min(shown.length, MAX_LISTED)} entries are shown; list a folder inside of it]` : "";
        return shown.slice(0, MAX_LISTED).join("\n") + more;
      },
    }),
  ];
}

/** A path that no command takes for an option. */
function operand(path: string): string {
  return posix.isAbsolute(path) ? path : `./${path}`;
}

async function settingsFor<State>(options: SandboxToolOptions<State>, context: CallContext<State>) {
  const of = async <T>(setting: SandboxToolSetting<T, State> | undefined): Promise<T | undefined> =>
    typeof setting === "function" ? (setting as (context: CallContext<State>) => MaybePromise<T | undefined>)(context) : setting;
  const [cwd, user, env, timeoutMs = TIMEOUT_MS] = [
    await of(options.cwd),
    await of(options.user),
    await of(options.env),
    await of(options.timeoutMs),
  ];
  return { timeoutMs, ...(cwd !== undefined && { cwd }), ...(user !== undefined && { user }), ...(env !== undefined && { env }) };
}
