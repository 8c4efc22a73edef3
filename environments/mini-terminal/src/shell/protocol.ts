// How commands are given to bash, and how it reports their end.
//
// bash runs as an interactive shell without a terminal, because only an interactive shell goes on after SIGINT. A command is sourced
// from a here-document, so it is parsed by itself: an unclosed quote cannot reach the next line. While it runs, its standard input is
// /dev/null, its output goes to a pipe, and the descriptors of this protocol are closed. bash reports the end on a descriptor of its
// own, so nothing that a command prints can be taken for it. The shell's own standard output and error are /dev/null: prompts and
// notices about jobs never mix with the output of commands.

/** Descriptors in bash. They are high, so that a command can open the low ones and keep them from call to call. */
const SCRIPT = 97;
const CONTROL = 98;
const OUTPUT = 99;

/** The descriptor of the control stream when bash starts. */
export const CONTROL_AT_START = 3;

/**
 * At this signal bash skips the rest of the running command. It does so between two parts of the command, as for every trap; SIGINT would
 * also come when bash starts a process, and then bash waits for that process later on. Without the trap, the signal has no effect.
 */
export const ABANDON_SIGNAL = "SIGURG";

/** Longer garbage on the control stream is dropped. */
const MAX_MESSAGE_BYTES = 64 * 1024;

/** The end of a command, as bash reports it. */
export interface EndMessage {
  readonly exitCode: number;
  /** The current folder of the shell. */
  readonly cwd: string;
}

export interface StartPaths {
  /** The named pipe for the output of commands. */
  readonly output: string;
  /** The file to which bash writes its current folder when it exits. */
  readonly lastFolder: string;
}

/** The first lines that bash reads. */
export function startText({ output, lastFolder }: StartPaths, nonce: string): string {
  return [
    `exec ${CONTROL}>&${CONTROL_AT_START} ${CONTROL_AT_START}>&- ${OUTPUT}>${quoted(output)}`,
    "set +o history +H; unset HISTFILE MAILCHECK",
    `trap ${quoted(`\\builtin pwd >${quoted(lastFolder)}`)} EXIT`,
    `trap ${quoted("\\builtin trap - INT; \\builtin kill -INT $$")} ${ABANDON_SIGNAL.slice(3)}`,
    endLine(nonce),
  ].join("\n");
}

/** The lines that run a command. The report is a line of its own, because an interrupt skips the rest of a line. */
export function commandText(command: string, nonce: string): string {
  const redirections = `</dev/null >&${OUTPUT} 2>&1 ${CONTROL}>&- ${OUTPUT}>&-`;
  return `\\builtin source /dev/fd/${SCRIPT} ${SCRIPT}<<'${nonce}' ${redirections}\n${command}\n${nonce}\n${endLine(nonce)}`;
}

/** The backslash bypasses aliases. */
function endLine(nonce: string): string {
  return `\\builtin printf '\\0%s %s %s\\0' ${nonce} "$?" "$PWD" >&${CONTROL}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Finds the report with the right nonce on the control stream, and ignores everything else. */
export class EndReader {
  readonly #nonce: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(nonce: string) {
    this.#nonce = nonce;
  }

  /** The report, as soon as it is complete. */
  push(chunk: Buffer): EndMessage | null {
    const text = Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (let end = text.indexOf(0); end >= 0; end = text.indexOf(0, start)) {
      const message = parseEnd(text.toString("utf8", start, end), this.#nonce);
      if (message !== null) return message;
      start = end + 1;
    }
    this.#rest = text.subarray(start).subarray(-MAX_MESSAGE_BYTES);
    return null;
  }
}

function parseEnd(text: string, nonce: string): EndMessage | null {
  const [, code, cwd] = /^(\d{1,3}) (.*)$/s.exec(text.startsWith(`${nonce} `) ? text.slice(nonce.length + 1) : "") ?? [];
  return code === undefined || cwd === undefined ? null : { exitCode: Number(code), cwd };
}
