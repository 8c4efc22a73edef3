import type { ExpectedCall } from "../platform/trainer.ts";
import { Child } from "../processes/child.ts";
import { dataPath } from "./data.ts";

/** The queries that a domain's process answers, with their parameters. */
export interface Queries {
  readonly open: { readonly dataPath: string; readonly domain: string };
  readonly callSequences: undefined;
  readonly lookups: { readonly count: number };
  readonly direct: { readonly ms: number };
  readonly creates: { readonly count: number };
  readonly copies: { readonly count: number };
  readonly held: { readonly count: number };
  readonly copyBytes: { readonly count: number };
  readonly hashes: { readonly writes: number };
}

interface Answers {
  readonly open: undefined;
  readonly callSequences: readonly (readonly ExpectedCall[])[];
  readonly lookups: readonly (readonly ExpectedCall[])[];
  readonly direct: number;
  readonly creates: number;
  readonly copies: number;
  readonly held: number;
  readonly copyBytes: number;
  readonly hashes: Hashes;
}

/** One entry per golden action that changed the world; times in milliseconds. */
export interface Hashes {
  readonly incrementalMs: readonly number[];
  readonly fullMs: readonly number[];
  readonly different: number;
}

/** A domain in its own process, called directly, without HTTP. */
export class World implements AsyncDisposable {
  readonly #child = new Child(new URL("./world-worker.ts", import.meta.url), [], { nodeOptions: ["--expose-gc"] });

  static async open(domain: string): Promise<World> {
    const world = new World();
    await world.query("open", { dataPath, domain });
    return world;
  }

  query<Name extends keyof Queries>(name: Name, argument: Queries[Name]): Promise<Answers[Name]> {
    return this.#child.query(name, argument);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
