import type { PlatformServer } from "../platform/server.ts";
import { Child } from "../processes/child.ts";

/** The commands of a runner, with their parameters. */
export interface Queries {
  readonly open: Pick<PlatformServer, "controlUrl" | "dataUrl"> & { readonly ref: string };
  readonly play: { readonly episodes: number; readonly concurrency: number };
  readonly requests: { readonly episodes: number; readonly concurrency: number };
  readonly direct: { readonly episodes: number };
  readonly journal: { readonly concurrency: number };
}

export interface Spent {
  readonly ms: number;
  /** User and system time of the runner's process. */
  readonly cpuUs: number;
}

/** A process that plays episodes on a platform. */
export class Runner implements AsyncDisposable {
  readonly #child: Child;

  private constructor(nodeOptions: readonly string[]) {
    this.#child = new Child(new URL("./worker.ts", import.meta.url), [], { nodeOptions, endBy: "SIGTERM" });
  }

  static async open({ controlUrl, dataUrl }: PlatformServer, ref: string, nodeOptions: readonly string[] = []): Promise<Runner> {
    const runner = new Runner(nodeOptions);
    await runner.#child.query("open", { controlUrl, dataUrl, ref } satisfies Queries["open"]);
    return runner;
  }

  measure<Name extends Exclude<keyof Queries, "open">>(name: Name, argument: Queries[Name]): Promise<Spent> {
    return this.#child.query(name, argument);
  }

  /** The peak of its resident memory since it was started. */
  peakBytes(): Promise<number> {
    return this.#child.query("peakBytes");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
