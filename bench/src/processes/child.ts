import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Answer, ExpectedCall } from "./answer.ts";
import { own } from "./own.ts";

export interface ChildOptions {
  readonly nodeOptions?: readonly string[];
  /** SIGTERM for a process that has to clean up. */
  readonly endBy?: "SIGKILL" | "SIGTERM";
}

/** A child process that answers queries over IPC. */
export class Child implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #name: string;
  readonly #end: () => Promise<void>;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #queries = 0;

  constructor(file: URL, args: readonly string[] = [], { nodeOptions = [], endBy = "SIGKILL" }: ChildOptions = {}) {
    this.#name = `${file.pathname.split("/").at(-1)} ${args.join(" ")}`.trim();
    // Its standard output is closed: this process's is for the results.
    this.#process = fork(fileURLToPath(file), args, { execArgv: [...nodeOptions], stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#end = own(this.#process, endBy);
    this.#process.on("message", (message) => this.#settle(message as Answer));
    this.#process.on("exit", (code, signal) => this.#failAll(`ended with ${code ?? signal}`));
    this.#process.on("error", (error) => this.#failAll(error.message));
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  query<T = unknown>(name: string, argument?: unknown): Promise<T> {
    const id = this.#queries++;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.#process.send({ id, name, argument } satisfies ExpectedCall, (error) => error && this.#failAll(error.message));
    return answer.promise as Promise<T>;
  }

  /** Kills it without cleanup, like a power cut. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }

  #settle({ id, result, error }: Answer): void {
    const answer = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(`${this.#name}: ${error}`));
  }

  #failAll(why: string): void {
    for (const answer of this.#waiting.values()) answer.reject(new Error(`${this.#name} ${why}`));
    this.#waiting.clear();
  }
}
