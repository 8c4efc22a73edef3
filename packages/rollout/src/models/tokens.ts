import type { AgentMessage } from "../player/agent.ts";
import { ModelError } from "../player/failure.ts";

/** Whether a trainer can use the tokens of a message: all three arrays are there. */
export function hasTokens({ turn }: AgentMessage): boolean {
  return turn !== undefined && turn.prompt_token_ids !== null && turn.completion_token_ids !== null && turn.logprobs !== null;
}

/** Whether a message is a text that a limit of tokens cut off. */
export function isCut({ message, turn }: AgentMessage): boolean {
  return turn?.finish_reason === "length" && (message.tool_calls ?? []).length === 0;
}

/** A limit of tokens cannot be kept if the endpoint does not say how many the model has written. */
export function noTokenCount(): ModelError {
  return new ModelError(
    "the model's answer does not say how many tokens it has, so the limit of tokens cannot be kept; leave the limit out, or have the program ask for usage (stream_options.include_usage)",
    { retryable: false },
  );
}

export function noTokens(baseUrl: string): ModelError {
  return new ModelError(
    `${baseUrl} returns no token ids or no log-probabilities; use the chat API of vLLM or of a recent SGLang, or do not ask for tokens`,
    { retryable: false },
  );
}
