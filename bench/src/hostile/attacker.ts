import { constants, setPriority } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { type Mallory, startMallory } from "aenvironment/hostile-tests";
import { clientOf } from "aenvironment/platform-tests";
import { answerParent } from "../processes/answer.ts";

/** What the process is told at its start. */
export interface AttackerOptions {
  readonly controlUrl: string;
  readonly dataUrl: string;
  readonly headers: { readonly authorization: string };
}

/** A wave begins at this interval, so that as many honest rollouts are played as hostile ones, unless a wave takes longer. */
const WAVE_MS = 2_000;

export type Conduct = "hostile" | "honest";

// The model endpoints and requests of one owner, in a process of their own.
let parties: Readonly<Record<Conduct, Mallory>>;
let playing: Promise<number> | null = null;
let isStopping = false;

answerParent({ open, start, stop });

// These parties would be on other machines.
setPriority(constants.priority.PRIORITY_LOW);

async function open({ headers, ...urls }: AttackerOptions): Promise<void> {
  const client = clientOf(urls);
  const hostile = await startMallory(client, { headers });
  // As many rollouts, whose environment and agent do what they should.
  const honest = await startMallory(client, {
    headers,
    version: "1.0.1",
    models: [],
    attacks: Array<string>(hostile.attacks).fill("none"),
  });
  parties = { hostile, honest };
}

/** Begins to play one wave after the other. */
function start(conduct: Conduct): void {
  isStopping = false;
  playing = play(conduct);
}

/** Waits for the end of the last wave, and returns the number of rollouts. */
async function stop(): Promise<number> {
  isStopping = true;
  return playing ?? 0;
}

async function play(conduct: Conduct): Promise<number> {
  const expected = conduct === "hostile" ? "unscored" : "scored";
  let rollouts = 0;
  do {
    const next = performance.now() + WAVE_MS;
    const results = await parties[conduct].play();
    const wrong = results.find(({ outcome }) => outcome.kind !== expected);
    if (wrong !== undefined) throw new Error(`the ${conduct} rollout ${wrong.id} is not ${expected}: ${JSON.stringify(wrong.outcome)}`);
    rollouts += results.length;
    while (!isStopping && performance.now() < next) await pause(10);
  } while (!isStopping);
  return rollouts;
}
