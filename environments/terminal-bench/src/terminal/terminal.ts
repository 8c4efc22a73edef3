import type { TaskProcess, TaskSandbox } from "@aenv/kit";
import { PROMPT_MARK, Screen } from "./screen.ts";

const SIZE = { rows: 40, cols: 160 };
/** After the last output before it counts as complete. */
const QUIET_MS = 50;

export interface TerminalOptions {
  readonly cwd: string | null;
  readonly user: string | null;
}

/** A shell with a screen, which lives as long as the agent works at a step. */
export class Terminal {
  readonly screen = new Screen(SIZE);
  readonly #process: TaskProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  #lastOutputAt = Date.now();
  #changed = Promise.withResolvers<void>();
  #hasEnded = false;

  private constructor(process: TaskProcess) {
    this.#process = process;
    this.#input = process.stdin.getWriter();
    void this.#follow().catch(() => {});
  }

  static async open(sandbox: TaskSandbox, { cwd, user }: TerminalOptions): Promise<Terminal> {
    const shell = "if command -v bash > /dev/null 2>&1; then exec bash; else exec sh; fi";
    const env = { TERM: "xterm", PROMPT_COMMAND: `printf '\\033]${PROMPT_MARK}\\007'` };
    const process = await sandbox.spawn(["sh", "-c", shell], {
      env,
      terminal: SIZE,
      ...(cwd !== null && { cwd }),
      ...(user !== null && { user }),
    });
    return new Terminal(process);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async type(text: string): Promise<void> {
    await this.#input.write(Buffer.from(text));
  }

  /** Waits until the shell has printed so many prompts, or until the time is over. */
  async untilPrompt(prompts: number, timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (this.screen.prompts < prompts && !this.#hasEnded && Date.now() < deadline)
      await Promise.race([this.#changed.promise, delay(deadline - Date.now())]);
    while (Date.now() < Math.min(deadline, this.#lastOutputAt + QUIET_MS)) await delay(QUIET_MS);
  }

  async close(): Promise<void> {
    await this.#process.close();
  }

  async #follow(): Promise<void> {
    try {
      for await (const bytes of this.#process.stdout) {
        this.screen.write(bytes);
        this.#lastOutputAt = Date.now();
        this.#changed.resolve();
        this.#changed = Promise.withResolvers();
      }
    } finally {
      this.#hasEnded = true;
      this.#changed.resolve();
    }
  }
}

/** A timer does not keep the process alive. */
function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
