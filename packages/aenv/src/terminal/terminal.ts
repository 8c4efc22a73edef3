import picocolors from "picocolors";

export type Colors = ReturnType<typeof picocolors.createColors>;

/** Where a command's words go, and what it may know of the world around it. */
export interface Terminal {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Can a person be asked a question here? */
  readonly isInteractive: boolean;
  /** From the first call on, Ctrl-C and SIGTERM fire this signal instead of ending the process. */
  stopSignal(): AbortSignal;
}

export interface Output {
  readonly colors: Colors;
  readonly isTty: boolean;
  readonly columns: number;
  write(text: string): void;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const env = { ...process.env };
  // Only for `init` to know; what this process starts has a Node that is new enough.
  delete process.env.AENV_STARTED_BY_NODE;
  let stop: AbortController | undefined;
  // Whoever reads no further wants no more, as in `aenv list | head`; what must still be cleared away is.
  const onUnread = () => (stop === undefined ? process.exit() : stop.abort());
  return {
    stdout: outputOf(process.stdout, onUnread),
    stderr: outputOf(process.stderr, onUnread),
    cwd: process.cwd(),
    env,
    isInteractive: Boolean(process.stdin.isTTY && process.stderr.isTTY),
    stopSignal: () => {
      stop ??= onStop();
      return stop.signal;
    },
  };
}

/** The same Ctrl-C may come twice, from the terminal and through npm; only one that comes later is impatience. */
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

function outputOf(stream: NodeJS.WriteStream, onUnread: () => void): Output {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    onUnread();
  });
  const isTty = stream.isTTY === true;
  return {
    colors: picocolors.createColors(wantsColor(process.env, isTty)),
    isTty,
    get columns() {
      return stream.columns ?? 100;
    },
    write: (text) => void stream.write(text),
  };
}

/** Colours only for people: a terminal, and neither NO_COLOR nor a dumb one. FORCE_COLOR insists. */
export function wantsColor(env: Readonly<Record<string, string | undefined>>, isTty: boolean): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0") return true;
  return isTty && env.TERM !== "dumb";
}
