import { Child } from "../processes/child.ts";
import type { PlatformServer } from "./server.ts";

/** A tool call, and the text that its answer must hold. */
export interface Question {
  readonly name: string;
  readonly arguments: unknown;
  readonly expect: string;
}

export interface Opening {
  readonly controlUrl: string;
  readonly dataUrl: string;
  /** What every instance is created with. */
  readonly variables?: Readonly<Record<string, string>>;
  /** What instance n is asked is number n of these, from the start again after the last; without any, each adds n to its sum. */
  readonly plays?: readonly (readonly Question[])[];
}

/** What a trainer can be told to do, and with what. */
export interface Ask {
  readonly open: Opening;
  readonly firstResults: { readonly ref: string; readonly count: number; readonly isPaced: boolean };
  readonly firstResultsAtOnce: { readonly ref: string; readonly count: number };
  /** Without a name at a sandbox, which serves but one environment. */
  readonly create: { readonly ref: string | null; readonly count: number };
  readonly createBatches: { readonly ref: string; readonly count: number; readonly size: number; readonly lanes: number };
  /** Paced: begun when as many processes wait as should. */
  readonly fork: { readonly id: string; readonly count: number; readonly isPaced?: boolean };
  readonly callEach: { readonly ids: readonly string[] };
  readonly playEach: { readonly ids: readonly string[]; readonly lanes: number };
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
  readonly playEach: { readonly ms: number; readonly wrong: number; readonly calls: number };
  readonly end: number;
  readonly live: number;
}

export interface Made {
  readonly ms: number;
  readonly ids: readonly string[];
}

/** A process that makes, calls and ends instances as a trainer does, and tells how long it took. */
export class Trainer implements AsyncDisposable {
  readonly #child = new Child(new URL("./trainer-worker.ts", import.meta.url));

  /** For a platform, or for anything that knows the same routes. */
  static async open(
    { controlUrl, dataUrl }: Pick<PlatformServer, "controlUrl" | "dataUrl">,
    more: Partial<Opening> = {},
  ): Promise<Trainer> {
    const trainer = new Trainer();
    await trainer.ask("open", { ...more, controlUrl, dataUrl });
    return trainer;
  }

  ask<Name extends keyof Ask>(name: Name, argument: Ask[Name]): Promise<Answers[Name]> {
    return this.#child.ask(name, argument);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
