import { parseBoundedJson } from "@aenv/kit";
import type { PlayedMessage, PlayedStep, PlayedTrajectory, PlayedTurn } from "../bench/episode.ts";
import { ATIF_VERSION } from "./write.ts";

export interface PlayedBy {
  readonly name: string;
  readonly version: string;
  readonly model: string | null;
}

type Step = Record<string, unknown>;

/** An episode of the platform as a trajectory of Harbor. */
export function playedTrajectory({ messages, steps, turns, usage, cost }: PlayedTrajectory, agent: PlayedBy, sessionId: string): Step {
  const all = messages.flatMap((message, at) =>
    stepOf(
      message,
      messages,
      turns.find((turn) => turn.message === at),
    ),
  );
  // Calls of a program that are in no message.
  const unseen = steps.filter(({ message }) => message === null).map(callStep);
  return {
    schema_version: ATIF_VERSION,
    session_id: sessionId,
    agent: { name: agent.name, version: agent.version, ...(agent.model !== null && { model_name: agent.model }) },
    steps: [...all, ...unseen].map((step, i) => ({ step_id: i + 1, ...step })),
    final_metrics: {
      ...(usage.prompt_tokens !== null && { total_prompt_tokens: usage.prompt_tokens }),
      ...(usage.completion_tokens !== null && { total_completion_tokens: usage.completion_tokens }),
      total_cached_tokens: usage.cached_tokens,
      ...(cost !== null && { total_cost_usd: cost }),
      total_steps: all.length + unseen.length,
    },
  };
}

/** A message with the results of its calls; nothing for the results themselves. */
function stepOf(message: PlayedMessage, messages: readonly PlayedMessage[], turn: PlayedTurn | undefined): Step[] {
  if (message.role === "tool") return [];
  const text = textOf(message.content);
  if (message.role !== "assistant") return [{ source: message.role === "user" ? "user" : "system", message: text }];
  const calls = message.tool_calls ?? [];
  const results = calls.flatMap(({ id }) => {
    const result = messages.find((one) => one.role === "tool" && one.tool_call_id === id);
    return result === undefined ? [] : [{ source_call_id: id, content: textOf(result.content) }];
  });
  return [
    {
      source: "agent",
      message: text,
      llm_call_count: turn === undefined ? 0 : 1,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, function: { name, arguments: given } }) => ({
          tool_call_id: id,
          function_name: name,
          arguments: argumentsOf(given),
        })),
      }),
      ...(results.length > 0 && { observation: { results } }),
      ...(turn !== undefined && { metrics: metricsOf(turn) }),
    },
  ];
}

function callStep({ call, result }: PlayedStep): Step {
  return {
    source: "agent",
    message: "",
    llm_call_count: 0,
    tool_calls: [{ tool_call_id: call.id, function_name: call.name, arguments: call.arguments }],
    observation: { results: [{ source_call_id: call.id, content: textOf(result.content) }] },
  };
}

function metricsOf({ prompt_tokens, completion_tokens, cached_tokens }: PlayedTurn): Step {
  const known = Object.entries({ prompt_tokens, completion_tokens, cached_tokens }).filter(([, value]) => value != null);
  return Object.fromEntries(known);
}

/** Text that is no JSON object is kept as a text. */
function argumentsOf(text: string): unknown {
  try {
    const parsed: unknown = parseBoundedJson(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? parsed : { text };
  } catch {
    return { text };
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { readonly text?: unknown }) => (typeof part.text === "string" ? part.text : "")).join("");
}
