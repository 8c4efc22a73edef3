import { type ChatMessage, type Step, type Trajectory, type Turn, textOf } from "@aenv/contract";
import { parseArguments } from "@aenv/sdk/adapters";
import { trainingTools } from "./chat-rows.ts";

/** The version that Harbor 0.25 writes. */
const VERSION = "ATIF-v1.8";

/** A trajectory in the agent trajectory interchange format: one step a message, tool results in the step of their calls. */
export function toAtif(trajectory: Trajectory): Record<string, unknown> {
  const { messages, tools, provenance, usage, cost, outcome } = trajectory;
  const parts = messages.flatMap((message, at) => (message.role === "tool" ? [] : [stepOf(message, at, trajectory)]));
  const lastWords = messages.at(-1)?.role === "assistant" ? parts.splice(-1) : [];
  const written = [...parts, ...unseenCalls(trajectory), ...lastWords].map((part, at) => ({ step_id: at + 1, ...part }));
  return {
    schema_version: VERSION,
    ...(trajectory.run !== null && { session_id: trajectory.run }),
    trajectory_id: trajectory.id,
    agent: {
      name: provenance.agent,
      version: provenance.client_version,
      ...(provenance.model !== null && { model_name: provenance.model }),
      ...(tools.length > 0 && { tool_definitions: trainingTools(tools) }),
    },
    // A document has at least one step, also of an episode that failed before its first message.
    steps: written.length > 0 ? written : [{ step_id: 1, source: "system", message: "" }],
    final_metrics: {
      ...(usage.prompt_tokens !== null && { total_prompt_tokens: usage.prompt_tokens }),
      ...(usage.completion_tokens !== null && { total_completion_tokens: usage.completion_tokens }),
      ...(cost !== null && { total_cost_usd: cost }),
      total_steps: Math.max(1, written.length),
    },
    extra: { environment: provenance.environment, task: trajectory.task, outcome, stop_reason: trajectory.stop_reason },
  };
}

function stepOf(message: ChatMessage, at: number, { messages, turns, steps }: Trajectory): Record<string, unknown> {
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
      tool_calls: tool_calls.map(({ id, function: { name, arguments: args } }) => {
        const parsed = parseArguments(args);
        return {
          tool_call_id: id,
          function_name: name,
          arguments: parsed.ok ? parsed.value : {},
          ...(!parsed.ok && { extra: { arguments_text: args } }),
        };
      }),
    }),
    ...(results.length > 0 && { observation: { results } }),
  };
}

/** The results that the model of a program was shown: its steps are not linked to messages. */
function answersTo({ tool_calls = [] }: ChatMessage, later: readonly ChatMessage[]): Record<string, unknown>[] {
  return tool_calls.flatMap(({ id }) => {
    const answer = later.find(({ role, tool_call_id }) => role === "tool" && tool_call_id === id);
    return answer === undefined ? [] : [{ source_call_id: id, content: textOf(answer) }];
  });
}

/** The tool calls of a program whose exchanges with a model were not recorded: no message has them. */
function unseenCalls({ messages, steps }: Trajectory): Record<string, unknown>[] {
  if (messages.some(({ tool_calls = [] }) => tool_calls.length > 0)) return [];
  return steps.map((step) => ({
    source: "agent",
    message: "",
    llm_call_count: 0,
    tool_calls: [{ tool_call_id: step.call.id, function_name: step.call.name, arguments: step.call.arguments }],
    observation: { results: [resultOf(step)] },
  }));
}

function resultOf({ call, result }: Step): Record<string, unknown> {
  return { source_call_id: call.id, content: contentText(result.content) };
}

function metricsOf({ prompt_tokens, completion_tokens, prompt_token_ids, completion_token_ids, logprobs }: Turn): Record<string, unknown> {
  const metrics = { prompt_tokens, completion_tokens, prompt_token_ids, completion_token_ids, logprobs };
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => value !== null));
}

function contentText(content: Step["result"]["content"]): string {
  return content.map((block) => (typeof block.text === "string" ? block.text : `[${block.type}]`)).join("\n");
}
