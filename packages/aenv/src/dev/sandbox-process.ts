import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isObject, messageOf, readBoundedText, tryJson } from "@aenv/contract";
import { dataDir } from "../project/data-dir.ts";
import { endedWhileLoading, loadTimedOut } from "../project/load-errors.ts";
import { Failure, type Place } from "../terminal/failure.ts";

export interface SandboxOptions {
  readonly root: string;
  readonly host: string;
  readonly socketPath: string;
  readonly loadTimeoutMs: number;
  /** Where children are: paths of projects, and URLs of environments that are served. */
  readonly places?: Readonly<Record<string, string>>;
  /** A line of the environment's output. */
  onLine(stream: "stdout" | "stderr", line: string): void;
  /** The process ended without being stopped. */
  onCrash(how: string): void;
  /** The environment has loaded, and its health check does not pass yet. Called at once, and then every two seconds at most if the reason changes. */
  onUnhealthy(reason: string): void;
}

const KILL_AFTER_MS = 15_000;
const HEALTH_TIMEOUT_MS = 30_000;
const HEALTH_INTERVAL_MS = 50;
const REPORT_INTERVAL_MS = 2_000;

/** A process that runs one version of the environment's code. */
export class SandboxProcess {
  readonly target: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #state: "starting" | "running" | "stopping" = "starting";

  private constructor(options: SandboxOptions) {
    this.target = options.socketPath;
    const entry = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./sandbox.ts" : "./sandbox.js", import.meta.url));
    const args = ["--disable-warning=ExperimentalWarning", entry, options.root, "--socket", options.socketPath, "--host", options.host];
    for (const [name, place] of Object.entries(options.places ?? {})) args.push("--use", `${name}=${place}`);
    const env = { ...process.env, AENV_DATA_DIR: dataDir(process.env) };
    this.#child = spawn(process.execPath, args, { cwd: options.root, env, stdio: ["pipe", "pipe", "pipe"] });
    this.#ended = once(this.#child, "close");
    this.#child.once("close", (code, signal) => {
      if (this.#state === "running") options.onCrash(signal === null ? `exit code ${code}` : `signal ${signal}`);
    });
  }

  /** Starts a process and resolves when its environment is loaded, set up and healthy. */
  static async start(options: SandboxOptions, signal: AbortSignal): Promise<SandboxProcess> {
    const sandbox = new SandboxProcess(options);
    try {
      await sandbox.#untilReady(options, signal);
      await sandbox.#untilHealthy(options, signal);
      sandbox.#state = "running";
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
  }

  /** Stops the process after calls in flight have finished; after a timeout it is killed. */
  async stop(): Promise<void> {
    this.#state = "stopping";
    this.#child.kill("SIGTERM");
    const killTimer = setTimeout(() => this.#child.kill("SIGKILL"), KILL_AFTER_MS);
    await this.#ended;
    clearTimeout(killTimer);
  }

  /** Events of the process are JSON lines on stdout, between the output of the environment. */
  async #untilReady(options: SandboxOptions, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#read("stdout", (line) => {
      const { before, event } = splitEvent(line);
      if (before !== "" || event === null) options.onLine("stdout", before);
      if (event?.event === "ready") resolve();
      else if (event?.event === "failed") reject(loadFailure(event));
    });
    this.#read("stderr", (line) => options.onLine("stderr", line));
    this.#child.once("error", reject);
    this.#child.once("close", (code, signal) => reject(endedWhileLoading(code, signal)));
    const timer = setTimeout(() => reject(loadTimedOut(options.loadTimeoutMs)), options.loadTimeoutMs);
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    try {
      signal.throwIfAborted();
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }

  #read(stream: "stdout" | "stderr", onLine: (line: string) => void): void {
    const input = this.#child[stream];
    if (input !== null) createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }).on("line", onLine);
  }

  async #untilHealthy({ onUnhealthy }: SandboxOptions, signal: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const either = AbortSignal.any([signal, late]);
    let reason = "it does not answer";
    let reported = "";
    let reportAt = 0;
    try {
      for (;;) {
        const { status, body: answer } = await getHealth(this.target, either);
        if (status === 200) return;
        const body = healthText(answer);
        // A reason may name the time, and be another one at each check.
        if (body !== reported && performance.now() >= reportAt) {
          onUnhealthy(body);
          reported = body;
          reportAt = performance.now() + REPORT_INTERVAL_MS;
        }
        reason = body;
        await pause(HEALTH_INTERVAL_MS, undefined, { signal: either });
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      throw new Failure(`the environment did not become healthy within ${HEALTH_TIMEOUT_MS / 1_000} s: ${reason}`);
    }
  }
}

interface SandboxEvent {
  readonly event: string;
  readonly [key: string]: unknown;
}

const EVENTS = new Set(["ready", "failed", "stopping"]);

/** An event and the text before it: an environment may print text without a line break. */
function splitEvent(line: string): { before: string; event: SandboxEvent | null } {
  const at = line.lastIndexOf('{"event":"');
  if (at < 0) return { before: line, event: null };
  try {
    const value: unknown = JSON.parse(line.slice(at));
    if (isObject(value) && EVENTS.has(String(value.event))) return { before: line.slice(0, at), event: value as SandboxEvent };
  } catch {
    // Not an event: output of the environment.
  }
  return { before: line, event: null };
}

function loadFailure({ message, code, file, line, column }: SandboxEvent): Failure {
  const place: Place | undefined =
    typeof file === "string" && typeof line === "number" ? { file, line, column: typeof column === "number" ? column : 1 } : undefined;
  // The location is printed separately.
  const text = place === undefined ? String(message) : String(message).replace(/^\S+:\d+(?::\d+)?: /, "");
  return new Failure([{ message: text, place }], { code: String(code) });
}

const MAX_HEALTH_BYTES = 1024 ** 2;

/** What the environment says of its health, without the envelope: `unhealthy: the model is loading`. */
function healthText(body: string): string {
  const answer = tryJson(body);
  const data = isObject(answer) && isObject(answer.data) ? answer.data : answer;
  if (!isObject(data) || typeof data.status !== "string") return body;
  const { status, ...rest } = data;
  const { reason, ...others } = rest;
  const more = Object.keys(others).length > 0 ? rest : reason;
  return more === undefined ? status : `${status}: ${typeof more === "string" ? more : JSON.stringify(more)}`;
}

function getHealth(socketPath: string, signal: AbortSignal): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: "/health", headers: { host: "localhost" }, signal }, (answer) => {
      readBoundedText(answer, { maxBytes: MAX_HEALTH_BYTES }).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
    });
    sent.on("error", (error) =>
      reject(signal.aborted ? signal.reason : new Failure(`the environment does not answer: ${messageOf(error)}`)),
    );
    sent.end();
  });
}
