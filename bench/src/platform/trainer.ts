import { Child } from "../processes/child.ts";
import type { PlatformServer } from "./server.ts";

/** A tool call, and the text that its answer must contain. */
export interface ExpectedCall {
  readonly name: string;
  readonly arguments: unknown;
  readonly expect: string;
}

export interface InstanceRequest {
  readonly controlUrl: string;
  readonly dataUrl: string;
  /** Options of every create request. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Calls of instance n are number n of these, modulo their count; without any, each instance adds n to its sum. */
  readonly callSequences?: readonly (readonly ExpectedCall[])[];
}

/** The commands of a trainer, with their parameters. */
export interface Queries {
  readonly open: InstanceRequest;
  readonly firstResults: { readonly ref: string; readonly count: number; readonly isPaced: boolean };
  readonly firstResultsAtOnce: { readonly ref: string; readonly count: number };
  /** Absent for a sandbox, which serves only one environment. */
  readonly create: { readonly ref: string | null; readonly count: number };
  readonly createBatches: { readonly ref: string; readonly count: number; readonly size: number; readonly lanes: number };
  /** Each start waits until the pool is full. */
  readonly fork: { readonly id: string; readonly count: number; readonly isPaced?: boolean };
  readonly callEach: { readonly ids: readonly string[] };
  readonly runEach: { readonly ids: readonly string[]; readonly lanes: number };
  readonly end: { readonly ids: readonly string[] };
  readonly live: undefined;
}

interface Answers {
  readonly open: undefined;
  readonly firstResults: readonly number[];
  readonly firstResultsAtOnce: readonly number[];
  readonly create: Made;
  readonly createBatches: Made;
  readonly fork: Made;
  readonly callEach: { readonly ms: number; readonly wrong: number };
  readonly runEach: { readonly ms: number; readonly wrong: number; readonly calls: number };
  readonly end: number;
  readonly live: number;
}

export interface Made {
  readonly ms: number;
  readonly ids: readonly string[];
}

/** A process that creates, calls and ends instances as a trainer does, and measures the times. */
export class Trainer implements AsyncDisposable {
  readonly #child = new Child(new URL("./trainer-worker.ts", import.meta.url));

  /** Opens a trainer of a platform, or of any server with the same routes. */
  static async open(
    { controlUrl, dataUrl }: Pick<PlatformServer, "controlUrl" | "dataUrl">,
    more: Partial<InstanceRequest> = {},
  ): Promise<Trainer> {
    const trainer = new Trainer();
    await trainer.query("open", { ...more, controlUrl, dataUrl });
    return trainer;
  }

  query<Name extends keyof Queries>(name: Name, argument: Queries[Name]): Promise<Answers[Name]> {
    return this.#child.query(name, argument);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
