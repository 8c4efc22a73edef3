import type { Message, ModelRequest, Reply, ToolCall } from "./script.ts";

/** How the scripted model returns token ids and log-probabilities on the chat route, to requests that ask for them. */
export interface ScriptedTokens {
  readonly engine: "vllm" | "sglang";
  /** Its chat template renders an earlier answer differently from the sampled tokens, so that later prompts do not extend them. */
  readonly drifts?: boolean;
  /** The version of the weights; only SGLang names it on this route. */
  readonly weightVersion?: string;
}

/** The fields that the engine adds to a chat completion: to the completion, and to its only choice. */
export function tokenFields(
  { engine, drifts = false, weightVersion }: ScriptedTokens,
  { messages }: Pick<ModelRequest, "messages">,
  reply: Reply,
): { readonly completion: object; readonly choice: object } {
  const prompt = tokenIds(`${messages.map((message) => rendered(message, drifts)).join("")}<assistant>`);
  const sampled = tokenIds(answered(reply));
  const logprobs = { content: sampled.map((id) => ({ token: `token_id:${id}`, logprob: -id / 1_000, bytes: null, top_logprobs: [] })) };
  if (engine === "vllm") return { completion: { prompt_token_ids: prompt }, choice: { token_ids: sampled, logprobs } };
  const metadata = weightVersion === undefined ? {} : { metadata: { weight_version: weightVersion } };
  return { completion: metadata, choice: { prompt_token_ids: prompt, response_token_ids: sampled, logprobs } };
}

function rendered(message: Message, drifts: boolean): string {
  if (message.role !== "assistant") return `<${message.role}>${message.text}<end>`;
  return `<assistant>${drifts ? " " : ""}${answered({ text: message.text, toolCalls: message.toolCalls ?? [] })}`;
}

function answered({ text, toolCalls }: { readonly text: string; readonly toolCalls: readonly ToolCall[] }): string {
  return `${text}${toolCalls.map(({ name, arguments: args }) => `<call>${name} ${args}`).join("")}<end>`;
}

/** One token for each character. */
function tokenIds(text: string): number[] {
  return [...text].map((letter) => letter.codePointAt(0) ?? 0);
}
