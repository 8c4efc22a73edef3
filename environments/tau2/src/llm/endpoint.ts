import { setTimeout } from "node:timers/promises";

/** A model behind an OpenAI-compatible endpoint. */
export interface ModelSettings {
  readonly model: string;
  /** Without a slash at its end, as in `https://host/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly temperature: number;
  readonly seed?: number;
  /** How long one answer may take; five minutes if not given. */
  readonly timeoutMs?: number;
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Waits before another try, no longer than the signal. */
  readonly pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const RETRIES = 3;
const TIMEOUT_MS = 300_000;
/** An endpoint that asks for more patience than this is not waited for. */
const LONGEST_PAUSE_MS = 60_000;

/** Sends a request and gives the answer's text. Overload and broken lines are tried again; what the endpoint refuses is not. */
export async function send(settings: ModelSettings, body: string, { signal, pause = wait }: SendOptions): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await post(settings, body, signal);
    if (outcome.ok) return outcome.text;
    if (!outcome.isTransient || attempt === RETRIES) throw new Error(outcome.problem);
    await pause(Math.min(outcome.pauseMs ?? 500 * 2 ** attempt, LONGEST_PAUSE_MS), signal);
    signal?.throwIfAborted();
  }
}

/** An error about a model's answer that says which model, and quotes the beginning of what it said without the key. */
export function modelError(settings: ModelSettings, problem: string, quoted: string): Error {
  return new Error(`${nameOf(settings)} ${problem}: ${withoutKey(quoted, settings).slice(0, 500)}`);
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
    const text = await response.text();
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
    // What breaks on the way has a cause; a request that cannot even be made has none, and never will be.
    const cause = error instanceof Error ? error.cause : undefined;
    const problem = modelError(settings, "cannot be reached", String(cause ?? error)).message;
    return { ok: false, problem, isTransient: cause !== undefined };
  }
}

/** How long an overloaded endpoint asks us to stay away; null if it does not say. */
function retryAfterMs({ headers }: Response): number | null {
  const [ms, seconds] = [headers.get("retry-after-ms"), headers.get("retry-after")];
  const asked = ms !== null ? Number(ms) : seconds !== null ? Number(seconds) * 1_000 : Number.NaN;
  return asked >= 0 ? asked : null;
}

/** Addresses may hold passwords and keys of their own. */
function nameOf({ model, baseUrl }: ModelSettings): string {
  return `the model '${model}' at ${withoutSecrets(baseUrl)}`;
}

/** Some endpoints quote the key that they refuse, and so does `fetch` with one that fits into no header. */
function withoutKey(text: string, { apiKey, baseUrl }: ModelSettings): string {
  const shown = text.replaceAll(baseUrl, withoutSecrets(baseUrl));
  return apiKey === "" ? shown : shown.replaceAll(apiKey, "***");
}

function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//").replace(/\?.*$/, "");
}

const wait = (ms: number, signal?: AbortSignal): Promise<void> => setTimeout(ms, undefined, { signal });
