import { assertUninterrupted, type TaskSandbox } from "@aenv/kit";
import type { NetworkPolicy } from "../trial/plan/network.ts";
import type { ExecOptions, ExecResult, SandboxEntry, TrialSandbox } from "../trial/sandbox.ts";
import { readArchive, writeArchive } from "./archive-entry.ts";
import { folderArchive } from "./archive-folder.ts";
import { egressOf } from "./egress.ts";

const MAX_OUTPUT_BYTES = 8 * 1024 ** 2;
/** Time limit of a command of the trial itself: the agent may have replaced the programs that it uses. */
const DEFAULT_TIMEOUT_MS = 10 * 60_000;

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

  async *read(path: string): AsyncGenerator<SandboxEntry> {
    const found = await this.kindOf(path);
    if (found === null) return;
    for await (const entry of readArchive(await this.#sandbox.files.download(path))) {
      const { type } = entry;
      if (type === "file" || type === "directory" || type === "link") yield { ...entry, type, path: found === "file" ? "" : entry.path };
    }
  }

  async write(path: string, entries: AsyncIterable<SandboxEntry>): Promise<void> {
    await this.#sandbox.files.upload(path, writeArchive(entries));
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
