import {
  digestAnswer,
  type EpisodeAbilities,
  episodeAbilities,
  instanceRoutes,
  PlatformError,
  parseBoundedJson,
  sandboxEnvelope,
} from "@aenv/contract";
import type { SandboxRequest } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { InitialState } from "./initial-state.ts";
import type { Slot } from "./slot.ts";

type Request = Omit<SandboxRequest, "timeoutMs">;

export interface ProgramEpisodesOptions {
  /** Sends a request to the program of an instance; an error response is thrown. */
  readonly request: (slot: Slot, request: Request) => Promise<unknown>;
  /** The same for a response of any form. */
  readonly ask: (slot: Slot, request: Request) => Promise<{ readonly status: number; readonly text: string }>;
}

/** The state of a program, as it reports it. */
export interface ProgramState {
  readonly snapshot: unknown;
  /** Digest of this state; undefined if the program computes none. */
  readonly digest: string | undefined;
}

/** A state that calls change all the time is read so often. */
const STORE_ATTEMPTS = 3;

/** The episodes of programs: those that answer `GET /episode` have tasks and a reset as environments of the kit do, and maybe snapshots. */
export class ProgramEpisodes {
  readonly #options: ProgramEpisodesOptions;

  constructor(options: ProgramEpisodesOptions) {
    this.#options = options;
  }

  /** Which parts of an episode the program has; null for one that has no episodes, such as a plain tool server. */
  async abilities(slot: Slot, signal: AbortSignal): Promise<EpisodeAbilities | null> {
    if (slot.program?.hasServer === false) return null;
    const { method, path } = instanceRoutes.abilities;
    return readAbilities(await this.#options.ask(slot, { method, path: slot.prefix + path, maxBytes: responseLimits.instance, signal }));
  }

  /** Begins the episode that a creation names, and continues from a state. Both are refused by programs without episodes. */
  async begin(slot: Slot, initial: InitialState, signal: AbortSignal): Promise<void> {
    const { id, task, seed, isSeedNamed = false, snapshot } = initial;
    if (task === null && !isSeedNamed && snapshot === undefined) return;
    const abilities = await this.abilities(slot, signal);
    if (abilities === null) {
      if (task !== null) throw unsupported(id, `has no task '${String(task)}': its program has no tasks`);
      if (snapshot !== undefined) throw unsupported(id, "cannot continue from a snapshot of its state: its program has no snapshots");
      // A plain tool server draws nothing from the seed. Rollouts name one for every environment.
      return;
    }
    if (task !== null || isSeedNamed) {
      const body = { ...(task !== null && { task }), ...(isSeedNamed && { seed }) };
      await this.#call(slot, "reset", responseLimits.reset, signal, body);
    }
    if (snapshot !== undefined) await this.#restore(slot, initial, abilities, signal);
  }

  /** The state of a program that stores it. The digest is of exactly this state, so that a copy can be compared with it. */
  async store(id: string, slot: Slot, signal: AbortSignal): Promise<ProgramState> {
    const hasDigest = (await this.abilities(slot, signal))?.digest === true;
    for (let attempt = 1; ; attempt++) {
      const before = hasDigest ? await this.#digest(slot, signal) : undefined;
      const snapshot = await this.#call(slot, "snapshot", responseLimits.state, signal, {});
      if (!hasDigest || (await this.#digest(slot, signal)) === before) return { snapshot, digest: before };
      if (attempt === STORE_ATTEMPTS)
        throw new PlatformError(
          "snapshot.unsupported",
          `the state of instance '${id}' cannot be stored: its digest changed while it was read; try again when no tool runs, and compute the digest of the state only`,
        );
    }
  }

  async #restore(slot: Slot, { id, snapshot, digest }: InitialState, abilities: EpisodeAbilities, signal: AbortSignal): Promise<void> {
    if (abilities.snapshot !== true) throw unsupported(id, `cannot continue from a snapshot of its state: ${NO_SNAPSHOTS}`);
    await this.#call(slot, "restore", responseLimits.instance, signal, { snapshot });
    if (digest === undefined || !abilities.digest) return;
    const restored = await this.#digest(slot, signal);
    if (restored !== digest)
      throw new PlatformError(
        "snapshot.invalid",
        `the program has restored another state than the one that was stored: its digest is '${restored}', not '${digest}'; /state/snapshot must hold all that /state/digest covers`,
      );
  }

  async #digest(slot: Slot, signal: AbortSignal): Promise<string> {
    const answer = digestAnswer.safeParse(await this.#call(slot, "digest", responseLimits.instance, signal));
    if (answer.success) return answer.data.digest;
    throw new PlatformError("episode.failed", "the program answered GET /state/digest with no digest");
  }

  #call(slot: Slot, name: "reset" | "snapshot" | "restore" | "digest", maxBytes: number, signal: AbortSignal, body?: unknown) {
    const { method, path } = instanceRoutes[name];
    return this.#options.request(slot, { method, path: slot.prefix + path, maxBytes, signal, ...(body !== undefined && { body }) });
  }
}

/** Why the state of a program is not copied. */
export const NO_SNAPSHOTS = 'its program does not answer GET /episode with "snapshot": true';

/** A server that is no environment may answer `GET /episode` with anything. */
export function readAbilities({ status, text }: { readonly status: number; readonly text: string }): EpisodeAbilities | null {
  if (status !== 200) return null;
  try {
    const envelope = sandboxEnvelope.parse(parseBoundedJson(text));
    return envelope.success ? (episodeAbilities.safeParse(envelope.data).data ?? null) : null;
  } catch {
    return null;
  }
}

function unsupported(id: string, why: string): PlatformError {
  return new PlatformError("instance.unsupported", `instance '${id}' ${why}; a program has these by the routes of docs/guides/programs.md`);
}
