import { costOfTurns, type Prices } from "../models/prices.ts";
import type { PlayOptions } from "./play.ts";

type Chosen = "agent" | "limits" | "deadlineMs" | "acquire" | "provenance" | "cancel";

/** The options that all callers choose, and those that only some do. */
export interface OwnPlayOptions extends Pick<PlayOptions, Chosen>, Partial<Omit<PlayOptions, Chosen | "costOf">> {
  /** Prices of the model; without them, episodes have no cost. */
  readonly prices?: Prices | null;
}

/** The options of episodes, with defaults. The command, the service and the bench make theirs here, so that their episodes are the same. */
export function playOptions({ prices = null, ...own }: OwnPlayOptions): PlayOptions {
  return {
    recorder: null,
    model: null,
    recordsDigests: false,
    costOf: (turns) => (prices === null ? null : costOfTurns(turns, prices)),
    now: () => performance.now(),
    date: () => new Date(),
    ...own,
  };
}
