import { parseBoundedJson } from "./bounded-json.ts";
import { type ChatMessage, textOf } from "./chat.ts";
import { isObject } from "./json.ts";
import type { Step, Trajectory } from "./trajectory.ts";
import type { Turn } from "./turn.ts";

/** The part of a trajectory that becomes steps and metrics of the agent trajectory interchange format (ATIF). */
export interface AtifSource extends Pick<Trajectory, "messages" | "cost"> {
  readonly steps: readonly Pick<Step, "message" | "call" | "result">[];
  readonly turns: readonly (Pick<Turn, "message" | "conversation"> & Partial<Turn>)[];
  readonly usage: Pick<Trajectory["usage"], "prompt_tokens" | "completion_tokens"> & Partial<Trajectory["usage"]>;
}

type Document = Record<string, unknown>;

/** The steps and the final metrics of a document: one step a message, results of tools in the step of their calls. */
export function atifSteps(source: AtifSource): { readonly steps: readonly Document[]; readonly final_metrics: Document } {
  const { messages, usage, cost } = source;
  const parts = messages.flatMap((message, at) => (message.role === "tool" ? [] : [stepOf(message, at, source)]));
  const lastWords = messages.at(-1)?.role === "assistant" ? parts.splice(-1) : [];
  const all = [...parts, ...unseenCalls(source), ...lastWords];
  // A document has at least one step, also for an episode that failed before its first message.
  const written = all.length > 0 ? all : [{ source: "system", message: "" }];
  return {
    steps: written.map((part, at) => ({ step_id: at + 1, ...part })),
    final_metrics: known({
      total_prompt_tokens: usage.prompt_tokens,
      total_completion_tokens: usage.completion_tokens,
      total_cached_tokens: usage.cached_tokens,
      total_cost_usd: cost,
      total_steps: written.length,
    }),
  };
}

function stepOf(message: ChatMessage, at: number, { messages, turns, steps }: AtifSource): Document {
  if (message.role !== "assistant") return { source: message.role === "user" ? "user" : "system", message: textOf(message) };
  const turn = turns.find((one) => one.message === at && one.conversation === undefined);
  const { reasoning_content, tool_calls = [] } = message;
  const own = steps.filter((step) => step.message === at);
  const results = own.length > 0 ? own.map(resultOf) : answersTo(message, messages.slice(at + 1));
  return {
    source: "agent",
    message: textOf(message),
    ...(turn === undefined ? { llm_call_count: 0 } : { llm_call_count: 1, metrics: metricsOf(turn) }),
    ...(turn !== undefined && typeof reasoning_content === "string" && { reasoning_content }),
    ...(tool_calls.length > 0 && {
      tool_calls: tool_calls.map(({ id, function: { name, arguments: args } }) => ({
        tool_call_id: id,
        function_name: name,
        ...argumentsOf(args),
      })),
    }),
    ...(results.length > 0 && { observation: { results } }),
  };
}

/** Arguments that are no JSON object are kept as a text beside the call. */
function argumentsOf(text: string): Document {
  if (text.trim() === "") return { arguments: {} };
  try {
    const value = parseBoundedJson(text);
    if (isObject(value)) return { arguments: value };
  } catch {
    // The model wrote no JSON.
  }
  return { arguments: {}, extra: { arguments_text: text } };
}

/** The results that the model of a program was shown: its steps are not linked to messages. */
function answersTo({ tool_calls = [] }: ChatMessage, later: readonly ChatMessage[]): Document[] {
  return tool_calls.flatMap(({ id }) => {
    const answer = later.find(({ role, tool_call_id }) => role === "tool" && tool_call_id === id);
    return answer === undefined ? [] : [{ source_call_id: id, content: textOf(answer) }];
  });
}

/** The tool calls of a program whose exchanges with a model were not recorded: no message has them. */
function unseenCalls({ messages, steps }: AtifSource): Document[] {
  if (messages.some(({ tool_calls = [] }) => tool_calls.length > 0)) return [];
  return steps.map((step) => ({
    source: "agent",
    message: "",
    llm_call_count: 0,
    tool_calls: [{ tool_call_id: step.call.id, function_name: step.call.name, arguments: step.call.arguments }],
    observation: { results: [resultOf(step)] },
  }));
}

function resultOf({ call, result }: AtifSource["steps"][number]): Document {
  const content = result.content.map((block) => (typeof block.text === "string" ? block.text : `[${block.type}]`)).join("\n");
  return { source_call_id: call.id, content };
}

function metricsOf(turn: AtifSource["turns"][number]): Document {
  const { prompt_tokens, completion_tokens, cached_tokens, prompt_token_ids, completion_token_ids, logprobs } = turn;
  return known({ prompt_tokens, completion_tokens, cached_tokens, prompt_token_ids, completion_token_ids, logprobs });
}

function known(values: Document): Document {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));
}
