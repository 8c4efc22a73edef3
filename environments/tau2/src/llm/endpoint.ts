import { setTimeout } from "node:timers/promises";
import { type ModelHandle, PlatformError, readBoundedText } from "@aenv/kit";

/** A model behind an OpenAI-compatible endpoint, or one that the environment declares. */
export interface ModelSettings {
  readonly model: string;
  /** Set if the environment, or the request for its instance, declares the model; the endpoint below is then not used. */
  readonly isDeclared?: boolean;
  /** Calls the declared model; set while an episode runs. */
  readonly declared?: ModelHandle;
  /** Without a trailing slash: `https://host/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly temperature: number;
  readonly seed?: number;
  /** Timeout of one request; five minutes if not given. */
  readonly timeoutMs?: number;
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Waits before a retry; ends early if the signal fires. */
  readonly pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const RETRIES = 3;
const MAX_ANSWER_BYTES = 32 * 1_024 ** 2;
const TIMEOUT_MS = 300_000;
/** The longest wait before a retry, whatever the endpoint asks for. */
const LONGEST_PAUSE_MS = 60_000;

/** Sends a request and returns the response body. Retries after overload and connection errors, but not after a refusal. */
export async function send(settings: ModelSettings, body: string, { signal, pause = wait }: SendOptions): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await post(settings, body, signal);
    if (outcome.ok) return outcome.text;
    if (!outcome.isTransient || attempt === RETRIES)
      throw new PlatformError("model.failed", outcome.problem, { retryable: outcome.isTransient });
    await pause(Math.min(outcome.pauseMs ?? 500 * 2 ** attempt, LONGEST_PAUSE_MS), signal);
    signal?.throwIfAborted();
  }
}

/** An error about a model's answer. It names the model and quotes the start of the answer without the key. */
export function modelError(settings: ModelSettings, problem: string, quoted: string): PlatformError {
  return new PlatformError("model.failed", `${nameOf(settings)} ${problem}: ${withoutKey(quoted, settings).slice(0, 500)}`);
}

type Outcome =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string; readonly isTransient: boolean; readonly pauseMs?: number | null };

async function post(settings: ModelSettings, body: string, signal?: AbortSignal): Promise<Outcome> {
  const { baseUrl, apiKey, timeoutMs = TIMEOUT_MS } = settings;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const headers = { "content-type": "application/json", authorization: `Bearer ${apiKey}` };
    const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const response = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers, body, signal: either });
    const text = await readBoundedText(response.body, { maxBytes: MAX_ANSWER_BYTES });
    if (response.ok) return { ok: true, text };
    const isTransient = response.status === 429 || response.status === 408 || response.status >= 500;
    return {
      ok: false,
      problem: modelError(settings, `answered ${response.status}`, text).message,
      isTransient,
      pauseMs: retryAfterMs(response),
    };
  } catch (error) {
    if (signal?.aborted) throw error;
    if (deadline.aborted) return { ok: false, problem: `${nameOf(settings)} gave no answer within ${timeoutMs} ms`, isTransient: true };
    // A connection error has a cause and is transient; a request that `fetch` cannot make has none and would fail again.
    const cause = error instanceof Error ? error.cause : undefined;
    const problem = modelError(settings, "cannot be reached", String(cause ?? error)).message;
    return { ok: false, problem, isTransient: cause !== undefined };
  }
}

/** The endpoint's `Retry-After`; null if it sends none. */
function retryAfterMs({ headers }: Response): number | null {
  const [ms, seconds] = [headers.get("retry-after-ms"), headers.get("retry-after")];
  const asked = ms !== null ? Number(ms) : seconds !== null ? Number(seconds) * 1_000 : Number.NaN;
  return asked >= 0 ? asked : null;
}

/** URLs may contain passwords and keys. */
function nameOf({ model, baseUrl }: ModelSettings): string {
  return `the model '${model}' at ${withoutSecrets(baseUrl)}`;
}

/** Some endpoints quote the key that they refuse, and `fetch` quotes a key that is invalid in a header. */
function withoutKey(text: string, { apiKey, baseUrl }: ModelSettings): string {
  const shown = text.replaceAll(baseUrl, withoutSecrets(baseUrl));
  return apiKey === "" ? shown : shown.replaceAll(apiKey, "***");
}

function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//").replace(/\?.*$/, "");
}

const wait = (ms: number, signal?: AbortSignal): Promise<void> => setTimeout(ms, undefined, { signal });
