import {
  isPlatformError,
  type ModelCall,
  type ModelCallAnswer,
  messageOf,
  modelCall,
  PlatformError,
  parseBoundedJson,
  problemsOf,
  readBoundedText,
  TimedSignal,
} from "@aenv/contract";
import { receivedContent } from "../link/content.ts";
import { HeldBytes } from "../link/held-bytes.ts";
import type { Handlers, LinkRequest, LinkTools } from "../link/link-request.ts";
import type { CallModel, ModelEndpoint } from "./endpoint.ts";
import type { InstanceModelEndpoints, ModelOwner } from "./instance-models.ts";

export interface ModelRequestsOptions<Instance extends ModelOwner> {
  readonly endpoints: InstanceModelEndpoints;
  readonly call: CallModel;
  /** An instance that runs in the process of this sandbox; null if there is none. */
  readonly findInstance: (hostId: string, instanceId: string) => Promise<Instance | null>;
  /** A call begins and ends: an instance whose model works is in use. */
  readonly begin: (instance: Instance) => void;
  readonly end: (instance: Instance) => void;
  /** Called for each call that ends; null without an answer. */
  readonly onCalled: (owner: string, answer: ModelCallAnswer | null) => void;
}

const MEBIBYTE = 1_024 ** 2;
const MAX_CALL_BYTES = 64 * MEBIBYTE;
/** A busy endpoint is waited for; not for ever. */
const MAX_CALL_MS = 30 * 60_000;

/** Answers the calls of models by the code of environments. */
export class ModelRequests<Instance extends ModelOwner> {
  readonly #options: ModelRequestsOptions<Instance>;
  readonly #conversations = new HeldBytes("conversations for models", { perHost: 128 * MEBIBYTE, total: 512 * MEBIBYTE });
  readonly #answers = new HeldBytes("answers of models", { perHost: 128 * MEBIBYTE, total: 512 * MEBIBYTE });

  constructor(options: ModelRequestsOptions<Instance>) {
    this.#options = options;
  }

  handlers(tools: Pick<LinkTools, "idleMs">): Pick<Handlers, "/model"> {
    return { "/model": (request) => this.#answer(request, tools.idleMs) };
  }

  async #answer(request: LinkRequest<"/model">, idleMs: number): Promise<ModelCallAnswer> {
    const { hostId, instanceId, given, refuse } = request;
    const { findInstance, endpoints, begin, end, onCalled } = this.#options;
    const instance = await findInstance(hostId, instanceId);
    if (instance === null)
      throw new PlatformError("instance.not_found", `instance '${instanceId.slice(0, 100)}' does not run in this process`);
    const conversation = this.#conversations.hold(hostId, refuse);
    const answer = this.#answers.hold(hostId, refuse);
    begin(instance);
    let answered: ModelCallAnswer | null = null;
    try {
      const call = await readCall(request, idleMs, (bytes) => conversation.add(bytes));
      const endpoint = await endpoints.find(instance, given.model);
      answered = await this.#call(endpoint, call, request.signal, (bytes) => answer.add(bytes));
      return answered;
    } finally {
      conversation.release();
      answer.release();
      end(instance);
      onCalled(instance.owner, answered);
    }
  }

  async #call(endpoint: ModelEndpoint, call: ModelCall, signal: AbortSignal, onBytes: (bytes: number) => void): Promise<ModelCallAnswer> {
    using limit = new TimedSignal(MAX_CALL_MS, signal);
    try {
      return await this.#options.call(endpoint, call, { signal: limit.signal, onBytes });
    } catch (error) {
      if (limit.isOver) throw new PlatformError("model.failed", `the model gave no answer within ${MAX_CALL_MS / 60_000} minutes`);
      signal.throwIfAborted();
      throw withoutKey(error, endpoint.apiKey);
    }
  }
}

async function readCall(request: LinkRequest<"/model">, idleMs: number, onBytes: (bytes: number) => void): Promise<ModelCall> {
  const text = await readBoundedText(counted(receivedContent(request, idleMs), onBytes), { maxBytes: MAX_CALL_BYTES });
  let value: unknown;
  try {
    value = parseBoundedJson(text);
  } catch (error) {
    throw new PlatformError("request.invalid", `/model: the call is not accepted: ${messageOf(error)}`);
  }
  const parsed = modelCall.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PlatformError("request.invalid", `/model: ${problemsOf(parsed.error, "the call")}`);
}

async function* counted(content: AsyncIterable<Uint8Array>, onBytes: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    onBytes(piece.length);
    yield piece;
  }
}

const SHORTEST_KEY = 6;

/** Endpoints repeat a wrong key in their errors, and the environment's code must not read it. */
function withoutKey(error: unknown, key: string): unknown {
  if (!isPlatformError(error, "model.failed") || key.length < SHORTEST_KEY || !error.message.includes(key)) return error;
  return new PlatformError("model.failed", error.message.replaceAll(key, "(the key)"), { retryable: error.retryable });
}
