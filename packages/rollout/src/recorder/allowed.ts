import type { IncomingHttpHeaders } from "node:http";

/** What programs need of a model's API. The endpoint's key may allow much more: files, batches, administration. */
const ALLOWED: readonly { readonly method: string; readonly path: RegExp }[] = [
  { method: "POST", path: /^(chat\/completions|completions|responses|messages|messages\/count_tokens)$/ },
  // The names of models may have slashes. No segment begins with a dot, and nothing is percent-encoded.
  { method: "GET", path: /^models(\/\w[\w.:@-]*)*$/ },
];

/** Whether a program's request is forwarded with the key of the model. `api` is its path after `/v1/`, as it was sent. */
export function isAllowed(method: string | undefined, api: string): boolean {
  return ALLOWED.some((one) => one.method === method && one.path.test(api));
}

/** The answer to another request, as the client's API writes errors. */
export function refusalFor(method: string | undefined, api: string, headers: IncomingHttpHeaders): object {
  const message = `${method} /${api} is not forwarded to the model: programs may POST chat/completions, completions, responses, messages and messages/count_tokens, and GET models`;
  if (api.startsWith("messages") || headers["anthropic-version"] !== undefined)
    return { type: "error", error: { type: "permission_error", message } };
  return { error: { message, type: "invalid_request_error", param: null, code: "request_not_allowed" } };
}
