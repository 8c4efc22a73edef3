import { once } from "node:events";
import picocolors from "picocolors";

export type Colors = ReturnType<typeof picocolors.createColors>;

/** A command's outputs, working directory and variables. */
export interface Terminal {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if a user can answer questions. */
  readonly isInteractive: boolean;
  /** From the first call on, Ctrl-C and SIGTERM abort this signal instead of ending the process. */
  stopSignal(): AbortSignal;
  /** Absent if there is none, as in tests. */
  readonly input?: TerminalInput;
}

/** What the user types, or another command writes. */
export interface TerminalInput {
  readonly isTty: boolean;
  size(): { readonly rows: number; readonly cols: number };
  /** Whether keys such as Ctrl-C are input instead of signals, and nothing is echoed. */
  setRaw(isRaw: boolean): void;
  /** Returns how to stop listening. */
  onResize(listener: () => void): () => void;
  chunks(): AsyncIterable<Uint8Array>;
  /** Nothing more is read, so that this process can exit. */
  close(): void;
}

export interface Output {
  readonly colors: Colors;
  readonly isTty: boolean;
  readonly columns: number;
  write(text: string): void;
  /** Writes output of other programs, which may not be text. Resolves when more may be written. */
  writeBytes?(bytes: Uint8Array): Promise<void>;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const env = { ...process.env };
  // Only `init` needs it. Child processes are started with a Node that is new enough.
  delete process.env.AENV_STARTED_BY_NODE;
  let stop: AbortController | undefined;
  // The reader has closed the pipe, as in `aenv list | head`: exit, or stop cleanly if there is something to clean up.
  const onClosed = () => (stop === undefined ? process.exit() : stop.abort());
  return {
    stdout: outputOf(process.stdout, onClosed),
    stderr: outputOf(process.stderr, onClosed),
    input: processInput(),
    cwd: process.cwd(),
    env,
    isInteractive: Boolean(process.stdin.isTTY && process.stderr.isTTY),
    stopSignal: () => {
      stop ??= onStop();
      return stop.signal;
    },
  };
}

function processInput(): TerminalInput {
  const { stdin, stdout } = process;
  return {
    isTty: stdin.isTTY === true,
    size: () => ({ rows: stdout.rows ?? 24, cols: stdout.columns ?? 80 }),
    setRaw: (isRaw) => void stdin.setRawMode?.(isRaw),
    onResize: (listener) => {
      stdout.on("resize", listener);
      return () => void stdout.off("resize", listener);
    },
    chunks: () => stdin.iterator({ destroyOnReturn: false }),
    close: () => void stdin.destroy(),
  };
}

/** One Ctrl-C may arrive twice, from the terminal and through npm. Only a later one is a second Ctrl-C, which exits at once. */
const SAME_KEYSTROKE_MS = 1_000;

function onStop(): AbortController {
  const controller = new AbortController();
  let first: number | undefined;
  const listener = (signal: NodeJS.Signals) => {
    first ??= performance.now();
    if (performance.now() - first > SAME_KEYSTROKE_MS) process.exit(signal === "SIGINT" ? 130 : 143);
    controller.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, listener);
  return controller;
}

function outputOf(stream: NodeJS.WriteStream, onClosed: () => void): Output {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    onClosed();
  });
  const isTty = stream.isTTY === true;
  return {
    colors: picocolors.createColors(wantsColor(process.env, isTty)),
    isTty,
    get columns() {
      return stream.columns ?? 100;
    },
    write: (text) => void stream.write(text),
    writeBytes: async (bytes) => {
      if (!stream.write(bytes)) await once(stream, "drain");
    },
  };
}

/** Colours are used on a terminal that is not dumb. NO_COLOR turns them off, FORCE_COLOR turns them on. */
export function wantsColor(env: Readonly<Record<string, string | undefined>>, isTty: boolean): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0") return true;
  return isTty && env.TERM !== "dumb";
}
