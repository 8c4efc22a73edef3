import { assertUninterrupted, type TaskSandbox } from "@aenv/kit";
import { fnmatch } from "../python/fnmatch.ts";
import type { NetworkPolicy } from "../trial/plan/network.ts";
import type { ExecOptions, ExecResult, SandboxFile, TrialSandbox } from "../trial/sandbox.ts";
import { readArchive } from "./archive-entry.ts";
import { folderArchive } from "./archive-folder.ts";
import { egressOf } from "./egress.ts";

const MAX_OUTPUT_BYTES = 8 * 1024 ** 2;
/** Of a command of the trial itself: the agent may have replaced the programs that it uses. */
const DEFAULT_TIMEOUT_MS = 10 * 60_000;
/** Of one download. More is an error, not a part of the files. */
const MAX_DOWNLOAD_BYTES = 64 * 1024 ** 2;

/** A sandbox of the platform, as the phases of a trial use it. */
export class PlatformSandbox implements TrialSandbox {
  readonly #sandbox: TaskSandbox;
  /** Ends what the environment keeps running in it for the agent. */
  readonly #endProcesses: () => Promise<void>;
  readonly #shell: "bash" | "sh";

  constructor(sandbox: TaskSandbox, endProcesses: () => Promise<void> = async () => {}, shell: "bash" | "sh" = "bash") {
    this.#sandbox = sandbox;
    this.#endProcesses = endProcesses;
    this.#shell = shell;
  }

  async exec(command: string, { user, cwd, env, timeoutMs }: ExecOptions = {}): Promise<ExecResult> {
    const result = await this.#sandbox.exec([this.#shell, "-c", `exec 2>&1\n${command}`], {
      maxOutputBytes: MAX_OUTPUT_BYTES,
      ...(user != null && { user: String(user) }),
      ...(cwd != null && { cwd }),
      ...(env !== undefined && { env }),
      timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS,
    });
    assertUninterrupted(result);
    // Nothing is on standard error, unless bash itself could not start.
    return { exitCode: result.timedOut ? null : result.exitCode, output: result.stdout + result.stderr, isTimedOut: result.timedOut };
  }

  async upload(folder: string, path: string): Promise<void> {
    await this.#sandbox.files.upload(path, folderArchive(folder));
  }

  async download(path: string, exclude: readonly string[] = []): Promise<readonly SandboxFile[]> {
    const type = await this.kindOf(path);
    if (type === null) return [];
    const files: SandboxFile[] = [];
    let total = 0;
    for await (const entry of readArchive(await this.#sandbox.files.download(path))) {
      if (entry.type !== "file" || isExcluded(entry.path, exclude)) continue;
      total += entry.size;
      if (total > MAX_DOWNLOAD_BYTES) throw new Error(`'${path}' has more than ${MAX_DOWNLOAD_BYTES} bytes`);
      const parts: Uint8Array[] = [];
      for await (const part of entry.content) parts.push(part);
      files.push({ path: type === "file" ? "" : entry.path, content: Buffer.concat(parts), modifiedSec: entry.modifiedSec });
    }
    return files;
  }

  async kindOf(path: string): Promise<"file" | "directory" | null> {
    try {
      const { type } = await this.#sandbox.files.stat(path);
      return type === "file" || type === "directory" ? type : null;
    } catch (error) {
      if ((error as { code?: string }).code === "file.not_found") return null;
      throw error;
    }
  }

  async hasReachedProcessLimit(): Promise<boolean> {
    const read = (path: string) => this.#sandbox.files.readText(path).catch(() => "");
    const events = (await read("/sys/fs/cgroup/pids.events")) || (await read("/sys/fs/cgroup/pids/pids.events"));
    return /^max [1-9]/m.test(events);
  }

  endProcesses(): Promise<void> {
    return this.#endProcesses();
  }

  setNetwork(policy: NetworkPolicy): Promise<void> {
    return this.#sandbox.setEgress(egressOf(policy));
  }

  stop(): Promise<void> {
    return this.#sandbox.close();
  }
}

/** An excluded folder excludes what is in it. */
function isExcluded(path: string, exclude: readonly string[]): boolean {
  const names = path.split("/");
  return names.some((name, i) => exclude.some((glob) => fnmatch(names.slice(0, i + 1).join("/"), glob) || fnmatch(name, glob)));
}
