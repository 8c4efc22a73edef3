import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPort } from "@aenv/contract";
import { locateErrors } from "../project/locate-errors.ts";
import { type Project, readProject } from "../project/project.ts";
import { Failure, toFailure } from "../terminal/failure.ts";
import { CommandProcess } from "./command-process.ts";
import { Relay } from "./relay.ts";
import { SandboxProcess } from "./sandbox-process.ts";
import { type Watch, watchProject } from "./watch.ts";

export type DevEvent =
  | { readonly event: "changed"; readonly files: readonly string[] }
  | { readonly event: "serving"; readonly project: Project }
  | { readonly event: "failed"; readonly failure: Failure; readonly isStillServing: boolean }
  | { readonly event: "unhealthy"; readonly reason: string; readonly isStillServing: boolean }
  | { readonly event: "crashed"; readonly how: string }
  | { readonly event: "output"; readonly stream: "stdout" | "stderr"; readonly line: string };

export interface DevOptions {
  readonly host: string;
  readonly port: number;
  /** Timeout in milliseconds for loading the environment's code. */
  readonly loadTimeout: number;
  /** Where children are: paths of projects, and URLs of environments that are served. */
  readonly use?: Readonly<Record<string, string>>;
  onEvent(event: DevEvent): void;
}

/** A process that serves one version of the project. */
type Version = SandboxProcess | CommandProcess;

/** Serves a project at one address: after every change, its newest version that loads. */
export class DevServer {
  readonly #root: string;
  readonly #options: DevOptions;
  readonly #relay = new Relay();
  readonly #sockets = mkdtempSync(join(tmpdir(), "aenv-"));
  readonly #draining = new Set<Promise<void>>();
  #watch: Watch | undefined;
  #current: Version | undefined;
  /** The newest start; it aborts an older one. */
  #attempt = new AbortController();
  #attempts: Promise<void> = Promise.resolve();
  #isStarting = false;
  #count = 0;

  private constructor(root: string, options: DevOptions) {
    this.#root = root;
    this.#options = options;
  }

  /** Resolves with the port once the project is served; throws if its first version does not load. */
  static async start(project: Project, options: DevOptions, signal: AbortSignal): Promise<{ server: DevServer; port: number }> {
    const server = new DevServer(project.root, options);
    try {
      const port = await server.#relay.listen(options.host, options.port);
      let changedMeanwhile: readonly string[] = [];
      let isOpen = false;
      server.#watch = watchProject(project.root, (files) => {
        if (isOpen) server.#reload(files);
        else changedMeanwhile = files;
      });
      await server.#startVersion(signal);
      isOpen = true;
      if (changedMeanwhile.length > 0) server.#reload(changedMeanwhile);
      return { server, port };
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#watch?.close();
    this.#attempt.abort();
    await this.#attempts;
    await this.#current?.stop();
    await Promise.all(this.#draining);
    await this.#relay.close();
    rmSync(this.#sockets, { recursive: true, force: true });
  }

  #reload(files: readonly string[]): void {
    this.#attempt.abort();
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#options.onEvent({ event: "changed", files });
    if (this.#current === undefined) this.#relay.hold();
    this.#isStarting = true;
    const before = this.#attempts;
    this.#attempts = this.#startVersion(attempt.signal)
      .catch((error: unknown) => {
        if (attempt.signal.aborted) return;
        this.#isStarting = false;
        const failure = toFailure(error);
        if (this.#current === undefined) this.#relay.refuse(`the environment does not load: ${failure.message}`);
        this.#options.onEvent({ event: "failed", failure, isStillServing: this.#current !== undefined });
      })
      .then(() => before);
  }

  /** Starts the current code. Once it is healthy, it gets the connections, and the version before it is drained. */
  async #startVersion(signal: AbortSignal): Promise<void> {
    const project = readProject(this.#root, this.#root);
    const sandbox =
      project.config.runtime === undefined ? await this.#startSandbox(project, signal) : await this.#startCommand(project, signal);
    if (signal.aborted) return sandbox.stop();
    const before = this.#current;
    this.#current = sandbox;
    this.#isStarting = false;
    this.#relay.use(sandbox.target);
    this.#options.onEvent({ event: "serving", project });
    if (before === undefined) return;
    const drained = before.stop().finally(() => this.#draining.delete(drained));
    this.#draining.add(drained);
  }

  async #startCommand(project: Project, signal: AbortSignal): Promise<CommandProcess> {
    const { runtime } = project.config;
    if (runtime !== undefined && !programPort(runtime).isFlexible) await this.#stopCurrent();
    const started: CommandProcess = await CommandProcess.start(
      {
        project,
        loadTimeoutMs: this.#options.loadTimeout,
        onLine: (stream, line) => this.#options.onEvent({ event: "output", stream, line }),
        onCrash: (how) => this.#onCrash(started, how),
      },
      signal,
    );
    return started;
  }

  /** A command that always listens on the same port cannot run twice. */
  async #stopCurrent(): Promise<void> {
    const before = this.#current;
    this.#current = undefined;
    this.#relay.hold();
    await before?.stop();
  }

  async #startSandbox(project: Project, signal: AbortSignal): Promise<SandboxProcess> {
    const number = ++this.#count;
    const pipe = `\\\\.\\pipe\\aenv-${process.pid}-${number}`;
    try {
      const sandbox: SandboxProcess = await SandboxProcess.start(
        {
          root: project.root,
          host: this.#options.host,
          loadTimeoutMs: this.#options.loadTimeout,
          ...(this.#options.use !== undefined && { places: this.#options.use }),
          socketPath: process.platform === "win32" ? pipe : join(this.#sockets, `${number}.sock`),
          onLine: (stream, line) => this.#options.onEvent({ event: "output", stream, line }),
          onCrash: (how) => this.#onCrash(sandbox, how),
          onUnhealthy: (reason) => this.#options.onEvent({ event: "unhealthy", reason, isStillServing: this.#current !== undefined }),
        },
        signal,
      );
      return sandbox;
    } catch (error) {
      if (signal.aborted || !(error instanceof Failure)) throw error;
      throw await locateErrors(project, error);
    }
  }

  #onCrash(sandbox: Version, how: string): void {
    if (sandbox !== this.#current) return;
    this.#current = undefined;
    if (this.#isStarting) this.#relay.hold();
    else this.#relay.refuse(`the environment crashed (${how}); it is restarted when a file is saved`);
    this.#options.onEvent({ event: "crashed", how });
  }
}
