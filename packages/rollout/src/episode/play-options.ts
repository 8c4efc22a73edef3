import { costOfTurns, type Prices } from "../models/prices.ts";
import type { PlayOptions } from "./play.ts";

type Chosen = "agent" | "limits" | "deadlineMs" | "acquire" | "provenance" | "cancel";

/** What everyone who plays episodes chooses, and what only some do. */
export interface OwnPlayOptions extends Pick<PlayOptions, Chosen>, Partial<Omit<PlayOptions, Chosen | "costOf">> {
  /** Prices of the model; without them, episodes have no cost. */
  readonly prices?: Prices | null;
}

/** The options of episodes. The command, the service and the bench make theirs here, so that episodes are the same in each of them. */
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
