import type { ModelRequest, ScriptedTurn } from "@aenv/testing";
import type { GoldenStep } from "./golden-task.ts";

export const USER = "scripted-user";
export const JUDGE = "scripted-judge";

const PLEASE = "Please do this and tell me what you see: ";
export const GOODBYE = "Goodbye.";

/** The words by which an agent has the user do something. */
export function requestFor(steps: readonly GoldenStep[]): string {
  return PLEASE + JSON.stringify(steps.map(({ name, argumentsText }) => ({ name, arguments: argumentsText })));
}

/** Plays the user and the judge of every episode at once: what they say follows from what they have heard. */
export function scriptedModels(request: ModelRequest): ScriptedTurn {
  return request.model === JUDGE ? judge() : user(request);
}

/** Does what the agent asks for, one call at a time, then tells all that the tools have answered; goes when the agent says goodbye. */
function user({ messages }: ModelRequest): ScriptedTurn {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const words = messages[asked]?.text ?? "";
  if (words.startsWith(GOODBYE)) return "###STOP###";
  if (!words.startsWith(PLEASE)) return "Hello.";
  const calls = JSON.parse(words.slice(PLEASE.length)) as { name: string; arguments: string }[];
  const seen = messages.slice(asked + 1).filter(({ role }) => role === "tool");
  const next = calls[seen.length];
  return next === undefined ? JSON.stringify(seen.map(({ text }) => text)) : { toolCalls: [next] };
}

/** Always content: rewards are then what the reference computes with these assertions left out, as it did for the vectors. */
function judge(): ScriptedTurn {
  return JSON.stringify({ results: [{ expectedOutcome: "all of them", metExpectation: true, reasoning: "As the script has it." }] });
}
