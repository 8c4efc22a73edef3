import { spawn } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox, SandboxExit, SandboxSpec } from "../../engine/engine.ts";
import { describeExit } from "../../host/exit-reason.ts";
import { once } from "../../host/once.ts";
import { openProcessTable } from "../../host/process-table.ts";
import { SandboxLog } from "../../host/sandbox-log.ts";

const table = openProcessTable();

/** A child of this process, with a folder and a process group of its own. */
export class ChildSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: { readonly kind: "unix"; readonly path: string };
  readonly pid: number | null;
  readonly exited: Promise<SandboxExit>;
  hasExited = false;
  readonly #log: SandboxLog;
  readonly #marker: string;
  #isDestroyed = false;
  /** Idempotent. */
  readonly destroy: () => Promise<void>;

  constructor(
    { id, labels, command: [program = "", ...args], variables, folder, cwd = "." }: SandboxSpec,
    home: string,
    forget: () => void,
  ) {
    const [work, log, path] = ["work", "log", "socket"].map((name) => join(home, name)) as [string, string, string];
    mkdirSync(work, { recursive: true });
    if (folder !== undefined) cpSync(folder, work, { recursive: true });
    this.id = id;
    this.labels = labels;
    this.address = { kind: "unix", path };
    this.#log = new SandboxLog(log, 1024 ** 2);
    this.#marker = `AENV_SANDBOX=${home}`;
    const output = openSync(log, "a");
    const env = { PATH: "/usr/local/bin:/usr/bin:/bin", ...variables, AENV_SANDBOX: home };
    const child = spawn(program, [...args, "--socket", path], {
      cwd: join(work, cwd),
      env,
      detached: true,
      stdio: ["ignore", output, output],
    });
    closeSync(output);
    this.pid = child.pid ?? null;
    const ending = Promise.withResolvers<string>();
    child.once("error", () => ending.resolve(`the program ${program} was not found`));
    child.once("exit", (code, signal) => {
      const exit = describeExit({ exit: { code, signal }, lines: this.#log.tail(20), memoryMb: null });
      ending.resolve(this.#isDestroyed ? "the sandbox was destroyed" : exit);
    });
    this.exited = ending.promise.then((reason) => {
      this.hasExited = true;
      return { at: new Date(), reason };
    });
    this.destroy = once(async () => {
      this.#isDestroyed = true;
      await this.#kill();
      await this.exited;
      await rm(home, { recursive: true, force: true });
      forget();
    });
  }

  async tail(lines: number): Promise<string[]> {
    return this.#log.tail(lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    return this.#log.follow(signal, this.exited);
  }

  async addFolder(folder: string): Promise<string> {
    return folder;
  }

  /** Ends its process group, and what has left the group. */
  async #kill(): Promise<void> {
    for (const pid of [-(this.pid ?? 0), ...(await table.findMarked(this.#marker))]) {
      try {
        if (pid !== 0) process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    }
  }
}
