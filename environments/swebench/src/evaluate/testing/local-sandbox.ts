import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { EvalSandbox, ExecOptions, ExecResult } from "../sandbox.ts";

/** Runs the commands on this machine, with the absolute paths of the image inside of a folder. */
export class LocalSandbox implements EvalSandbox {
  readonly commands: string[] = [];
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async exec(command: readonly string[], { cwd, timeoutMs }: ExecOptions = {}): Promise<ExecResult> {
    this.commands.push(command.join(" "));
    const [program = "", ...args] = command.map((part) => (part === "/bin/bash" ? part : this.#local(part)));
    const child = spawn("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", program, ...args], {
      cwd: cwd === undefined ? this.#root : this.#local(cwd),
      detached: true,
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    let isTimedOut = false;
    const timer = setTimeout(() => {
      isTimedOut = true;
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, timeoutMs ?? 60_000);
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    clearTimeout(timer);
    return { exitCode: isTimedOut ? null : exitCode, output: Buffer.concat(chunks) };
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    const file = this.#local(path);
    await mkdir(dirname(file), { recursive: true });
    const isScript = path === "/eval.sh";
    await writeFile(
      file,
      isScript
        ? Buffer.from(bytes)
            .toString()
            .replace(/\/(?:testbed|image_assets)\b/g, (p) => this.#local(p))
        : bytes,
    );
  }

  #local(part: string): string {
    return part.startsWith("/") ? join(this.#root, part) : part;
  }
}
