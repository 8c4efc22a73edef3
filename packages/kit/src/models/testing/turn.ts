/** What a scripted call of a model reports beside its message. */
export const turn = {
  completion_id: null,
  finish_reason: "stop",
  prompt_token_ids: null,
  completion_token_ids: null,
  logprobs: null,
  weight_versions: [],
  prompt_tokens: 7,
  completion_tokens: 2,
};
