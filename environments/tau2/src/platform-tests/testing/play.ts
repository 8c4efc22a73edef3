import type { Environment } from "aenvironment";
import type { GoldenStep, GoldenTask, Hashes } from "./golden-task.ts";
import { GOODBYE, requestFor } from "./scripted-models.ts";

/** The observation and the hashes after an action. */
export interface Seen {
  readonly observation: string;
  readonly hashes: Hashes;
}

interface Result {
  readonly observation: string;
  readonly done: boolean;
}

/** Runs golden actions: the agent's as tool calls, the user's by a request to the user. */
export async function play(env: Environment, steps: readonly GoldenStep[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (const block of blocksOf(steps)) {
    const [first] = block as [GoldenStep];
    const { observation } =
      first.requestor === "assistant"
        ? (await env.callTool(first.name, asWritten(first.argumentsText))).json<Result>()
        : await env.callFunction<Result>("tau2_send_message", { message: requestFor(block) });
    seen.push({ observation, hashes: await hashesOf(env) });
  }
  return seen;
}

/** The reference's observations and hashes. */
export function expected(steps: readonly GoldenStep[]): Seen[] {
  return blocksOf(steps).map((block) => {
    const { requestor, content, hashes } = block.at(-1) as GoldenStep;
    const observation = requestor === "assistant" ? content : JSON.stringify(block.map((step) => step.content));
    return { observation, hashes };
  });
}

/** Sends the required information and a goodbye, after which the user ends the conversation; returns the reward. */
export async function finish(env: Environment, infos: GoldenTask["infos"]): Promise<number> {
  const { done } = await env.callFunction<Result>("tau2_send_message", { message: [GOODBYE, ...infos].join(" ") });
  if (!done) throw new Error("the user did not end the conversation");
  return (await env.score()).reward;
}

export async function hashesOf(env: Environment): Promise<Hashes> {
  const { agent, user } = await env.callFunction<{ agent: string | null; user: string | null }>("tau2_get_state_hash");
  return [agent, user];
}

/** One block per action of the agent, and one per sequence of user actions. */
export function blocksOf(steps: readonly GoldenStep[]): GoldenStep[][] {
  const blocks: GoldenStep[][] = [];
  for (const step of steps) {
    const last = blocks.at(-1);
    if (step.requestor === "user" && last?.[0]?.requestor === "user") last.push(step);
    else blocks.push([step]);
  }
  return blocks;
}

const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): Record<string, unknown>;
  rawJSON(text: string): unknown;
};

/** Arguments that keep the notation of numbers when they are sent: `2.0` does not become `2`. */
function asWritten(text: string): Record<string, unknown> {
  return parse(text, (_, value, { source }) => (typeof value === "number" ? rawJSON(source) : value));
}
