import type { ModelRequest, ScriptedTurn } from "@aenv/testing";
import type { GoldenStep } from "./golden-task.ts";

export const USER = "scripted-user";
export const JUDGE = "scripted-judge";

const PLEASE = "Please do this and tell me what you see: ";
export const GOODBYE = "Goodbye.";

/** The message that asks the user for actions. */
export function requestFor(steps: readonly GoldenStep[]): string {
  return PLEASE + JSON.stringify(steps.map(({ name, argumentsText }) => ({ name, arguments: argumentsText })));
}

/** The user and judge models of all episodes; each answer depends only on its request. */
export function scriptedModels(request: ModelRequest): ScriptedTurn {
  return request.model === JUDGE ? judge() : user(request);
}

/** Makes the requested calls one by one, then reports all results; stops after a goodbye. */
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

/** Accepts every assertion: the vectors were computed without these assertions, so the rewards are equal. */
function judge(): ScriptedTurn {
  return JSON.stringify({ results: [{ expectedOutcome: "all of them", metExpectation: true, reasoning: "As the script has it." }] });
}
