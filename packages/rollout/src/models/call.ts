import type { ModelCall, ModelCallAnswer } from "@aenv/contract";
import { readWhole } from "./answer.ts";
import type { ModelApi } from "./dialect.ts";
import { dialects } from "./dialects.ts";
import { type ModelAnswer, type ModelHttp, RefusedByModel } from "./http.ts";

/** A model's endpoint, and how it is asked. */
export interface CalledModel {
  readonly api: ModelApi;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly name: string;
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly extraBody: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Asks for token ids and log-probabilities. An endpoint that refuses such a request is asked without. */
  readonly wantsTokens: boolean;
}

export interface CallModelOptions {
  readonly signal: AbortSignal;
  /** Called with the size of each piece of the answer. */
  readonly onBytes?: (bytes: number) => void;
}

/** Calls a model once, for a caller that keeps the conversation itself. Fails with a ModelError. */
export async function callModel(
  model: CalledModel,
  call: ModelCall,
  http: ModelHttp,
  { signal, onBytes = () => {} }: CallModelOptions,
): Promise<ModelCallAnswer> {
  const { api, baseUrl, apiKey, name, headers, extraBody, wantsTokens } = model;
  const dialect = dialects[api];
  const ask = async (asksTokens: boolean): Promise<ModelCallAnswer> => {
    const request = {
      url: baseUrl.replace(/\/$/, "") + dialect.path,
      headers: { ...dialect.headers(apiKey), ...headers },
      body: { ...dialect.body({ ...turnOf(model, call), model: name, streams: false, wantsTokens: asksTokens }), ...extraBody },
    };
    const { message, turn } = dialect.read(await http.post(request, (body) => readWhole(counted(body, onBytes), dialect), signal));
    return { message, turn };
  };
  try {
    return await ask(wantsTokens);
  } catch (error) {
    if (!wantsTokens || !(error instanceof RefusedByModel)) throw error;
    return ask(false);
  }
}

function turnOf({ sampling }: CalledModel, { messages, tools, tool_choice, temperature, max_tokens, seed, response_format }: ModelCall) {
  return {
    messages,
    tools,
    seed,
    maxTokens: max_tokens,
    sampling: { ...sampling, ...(temperature !== undefined && { temperature }) },
    toolChoice: tool_choice,
    responseFormat: response_format,
  };
}

async function* counted(body: ModelAnswer, onBytes: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    onBytes(piece.length);
    yield piece;
  }
}
