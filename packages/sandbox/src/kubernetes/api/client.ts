import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { messageOf, PlatformError, parseBoundedJson, readBoundedText } from "@aenv/contract";
import { Agent, type Dispatcher } from "undici";
import type { ClusterAccess } from "./access.ts";
import { errorIn, isKubernetesError } from "./error.ts";
import { retryPauseMs } from "./retry.ts";

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

export interface ObjectList<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export interface ApiCounters {
  /** Requests that were sent, by verb: get, list, watch, create, update, patch or delete. Logs count as get. */
  readonly calls: Readonly<Record<string, number>>;
  /** Answers with the status 429. */
  readonly throttled: number;
  /** Requests that were sent again. */
  readonly retries: number;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  /** The request names the state that it expects: a conflict is its answer. */
  readonly hasPrecondition?: boolean;
}

export interface DeleteOptions {
  /** Only this object, and not a later one of the same name. */
  readonly uid?: string;
  /** Only if it has not changed since. */
  readonly resourceVersion?: string;
  readonly graceSeconds?: number;
  readonly signal?: AbortSignal;
}

const PAGE = "500";
const HEADERS_TIMEOUT_MS = 20_000;
/** A page of the largest objects that etcd stores has several hundred MiB; pages of pods have a few. */
const MAX_ANSWER_BYTES = 256 * 1_024 ** 2;
const MAX_ERROR_BYTES = 1_024 ** 2;
const TOKEN_KEPT_MS = 10_000;
/** Connections for short requests. Watches and logs have their own. */
const CONNECTIONS = 32;

/** The API of a Kubernetes cluster. Paths begin with `/api/v1` or `/apis/GROUP/VERSION`. */
export class KubernetesApi {
  readonly #access: ClusterAccess;
  #calls: Agent;
  readonly #streams: Agent;
  readonly #counts: Record<string, number> = {};
  #throttled = 0;
  #retries = 0;
  #token: { readonly text: string; readonly until: number } | undefined;

  constructor(access: ClusterAccess) {
    this.#access = access;
    this.#calls = this.#newAgent(CONNECTIONS);
    this.#streams = this.#newAgent(null);
  }

  get counters(): ApiCounters {
    return { calls: { ...this.#counts }, throttled: this.#throttled, retries: this.#retries };
  }

  get<T extends KubernetesObject>(path: string, signal?: AbortSignal): Promise<T> {
    return this.#json("GET", path, { ...(signal !== undefined && { signal }) });
  }

  /** Null if there is no such object. */
  async find<T extends KubernetesObject>(path: string, signal?: AbortSignal): Promise<T | null> {
    try {
      return await this.get<T>(path, signal);
    } catch (error) {
      if (isKubernetesError(error, 404)) return null;
      throw error;
    }
  }

  /** All objects, read page by page, as they were at one moment. */
  async list<T extends KubernetesObject>(
    path: string,
    query: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<ObjectList<T>> {
    const items: T[] = [];
    let next: string | undefined;
    for (;;) {
      const page = await this.#json<{ items?: T[]; metadata: { resourceVersion: string; continue?: string } }>("GET", path, {
        query: { ...query, limit: PAGE, ...(next !== undefined && { continue: next }) },
        ...(signal !== undefined && { signal }),
      });
      items.push(...(page.items ?? []));
      next = page.metadata.continue;
      if (next === undefined || next === "") return { items, resourceVersion: page.metadata.resourceVersion };
    }
  }

  create<T extends KubernetesObject>(path: string, body: T, signal?: AbortSignal): Promise<T> {
    return this.#json("POST", path, { body, ...(signal !== undefined && { signal }) });
  }

  /** A JSON merge patch: null removes a field. If it names a version, it changes that one only. */
  patch<T extends KubernetesObject>(path: string, body: object, signal?: AbortSignal): Promise<T> {
    const hasPrecondition = (body as { readonly metadata?: Partial<ObjectMeta> }).metadata?.resourceVersion !== undefined;
    const contentType = "application/merge-patch+json";
    return this.#json("PATCH", path, { body, contentType, hasPrecondition, ...(signal !== undefined && { signal }) });
  }

  /** The whole object. If it names a version, it replaces that one only. */
  replace<T extends KubernetesObject>(path: string, body: T, signal?: AbortSignal): Promise<T> {
    const hasPrecondition = body.metadata.resourceVersion !== undefined;
    return this.#json("PUT", path, { body, hasPrecondition, ...(signal !== undefined && { signal }) });
  }

  /** False if the object, or the one with this uid and version, does not exist. */
  async delete(path: string, { uid, resourceVersion, graceSeconds, signal }: DeleteOptions = {}): Promise<boolean> {
    const hasPrecondition = uid !== undefined || resourceVersion !== undefined;
    const body = {
      kind: "DeleteOptions",
      apiVersion: "v1",
      ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
      ...(hasPrecondition && {
        preconditions: { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) },
      }),
    };
    try {
      await this.#json("DELETE", path, { body, hasPrecondition, ...(signal !== undefined && { signal }) });
      return true;
    } catch (error) {
      if (isKubernetesError(error, 404) || (hasPrecondition && isKubernetesError(error, 409))) return false;
      throw error;
    }
  }

  /** The body of an answer as it arrives. Not repeated: the caller knows from where to go on. */
  async stream(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Dispatcher.ResponseData["body"]> {
    const { answer } = await this.#send(this.#streams, "GET", path, { query, signal });
    return answer.body;
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.destroy(), this.#streams.destroy()]);
  }

  async #json<T>(method: Dispatcher.HttpMethod, path: string, options: CallOptions): Promise<T> {
    for (let attempts = 1; ; attempts++) {
      const sent = await this.#attempt<T>(method, path, options);
      if ("value" in sent) return sent.value;
      const { error } = sent;
      if (options.signal?.aborted) throw options.signal.reason;
      const pauseMs = retryPauseMs({
        error,
        attempts,
        hasPrecondition: options.hasPrecondition ?? false,
        random: Math.random(),
      });
      if (pauseMs === null) throw error;
      this.#retries++;
      await setTimeout(pauseMs, undefined, { ...(options.signal !== undefined && { signal: options.signal }) }).catch(() => undefined);
      if (options.signal?.aborted) throw options.signal.reason;
    }
  }

  async #attempt<T>(
    method: Dispatcher.HttpMethod,
    path: string,
    options: CallOptions,
  ): Promise<{ readonly value: T } | { readonly error: unknown }> {
    try {
      const { answer } = await this.#send(this.#calls, method, path, options);
      return { value: parseBoundedJson(await readBoundedText(answer.body, { maxBytes: MAX_ANSWER_BYTES })) as T };
    } catch (error) {
      return { error };
    }
  }

  async #send(
    agent: Agent,
    method: Dispatcher.HttpMethod,
    path: string,
    options: CallOptions,
  ): Promise<{ answer: Dispatcher.ResponseData }> {
    const query = new URLSearchParams(options.query).toString();
    const token = await this.#readToken();
    const verb = verbOf(method, options.query);
    this.#counts[verb] = (this.#counts[verb] ?? 0) + 1;
    let answer: Dispatcher.ResponseData;
    try {
      answer = await agent.request({
        origin: new URL(this.#access.server).origin,
        method,
        path: `${new URL(this.#access.server).pathname.replace(/\/$/, "")}${path}${query === "" ? "" : `?${query}`}`,
        headers: {
          accept: "application/json",
          "user-agent": "aenv",
          ...(options.body !== undefined && { "content-type": options.contentType ?? "application/json" }),
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        body: options.body === undefined ? null : JSON.stringify(options.body),
        signal: options.signal ?? null,
        headersTimeout: HEADERS_TIMEOUT_MS,
        // Watches and logs are silent for any time.
        bodyTimeout: 0,
      });
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if ((error as NodeJS.ErrnoException).code === "UND_ERR_HEADERS_TIMEOUT") this.#replaceConnections(agent);
      throw this.#unreachable(error);
    }
    if (answer.statusCode < 300) return { answer };
    if (answer.statusCode === 429) this.#throttled++;
    // The account's token may have been replaced.
    if (answer.statusCode === 401) this.#token = undefined;
    const after = answer.headers["retry-after"];
    throw errorIn(
      answer.statusCode,
      await readBoundedText(answer.body, { maxBytes: MAX_ERROR_BYTES }),
      typeof after === "string" ? after : null,
    );
  }

  #newAgent(connections: number | null): Agent {
    const { ca, certificate, key, serverName, skipsVerification } = this.#access;
    const connect = {
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { cert: certificate, key }),
      ...(serverName !== undefined && { servername: serverName }),
      ...(skipsVerification === true && { rejectUnauthorized: false }),
    };
    // With HTTP/2, one connection that is dead without being closed would hold up all watches and calls.
    return new Agent({ connect, connections, allowH2: false });
  }

  /** Connections of which one gave no answer may all be dead: a server that was switched off closes none. */
  #replaceConnections(used: Agent): void {
    if (used !== this.#calls) return;
    this.#calls = this.#newAgent(CONNECTIONS);
    // Requests that wait for their answers on them may still get them.
    void used.close().catch(() => undefined);
  }

  async #readToken(): Promise<string | null> {
    const { token, tokenFile } = this.#access;
    if (token !== undefined) return token;
    if (tokenFile === undefined) return null;
    if (this.#token === undefined || this.#token.until < Date.now())
      this.#token = { text: (await readFile(tokenFile, "utf8")).trim(), until: Date.now() + TOKEN_KEPT_MS };
    return this.#token.text;
  }

  #unreachable(cause: unknown): PlatformError {
    return new PlatformError(
      "sandbox.lost",
      `the Kubernetes API at ${this.#access.server} does not answer (${messageOf(cause)}): check the address and the credentials of the kubeconfig`,
      { cause },
    );
  }
}

/** As Kubernetes names it in rights and in its own metrics. */
function verbOf(method: Dispatcher.HttpMethod, query: CallOptions["query"] = {}): string {
  switch (method) {
    case "GET":
      return query.watch === "true" ? "watch" : query.limit === undefined ? "get" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    default:
      return method.toLowerCase();
  }
}
