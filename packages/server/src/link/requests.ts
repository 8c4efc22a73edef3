import { constants, type ServerHttp2Stream } from "node:http2";
import { isPlatformError, LINK_INSTANCE, type LinkFailure, type LinkPath, linkRequests, PlatformError, problemsOf } from "@aenv/contract";
import { OpenCounts } from "../sandboxes/open-counts.ts";
import { endAnswer } from "./content.ts";
import { HeldBytes } from "./held-bytes.ts";
import { ANSWERED, type Handlers, type LinkRequest, type LinkTools } from "./link-request.ts";
import { type ParameterLimits, parameterLimits, readParameters } from "./request-body.ts";

export interface RequestsOptions {
  /** What answers each path. Each kind of request has its handlers in a room of its own. */
  readonly handlers: (tools: LinkTools) => Handlers;
  readonly onFailure: (error: unknown) => void;
  /** What the parameters of a request may be; by default that depends on its path. */
  readonly parameters?: ParameterLimits;
  /** A request of which nothing arrives or is read for so long ends; at most ten minutes. */
  readonly idleMs?: number;
}

const MEBIBYTE = 1_024 ** 2;
const IDLE_MS = 10 * 60_000;
/** Requests of one process that are being worked at, those included that it has cancelled meanwhile. */
const WORK_AT_ONCE = 512;

/** Answers the requests of the processes of environments. */
export class LinkRequests {
  readonly #options: RequestsOptions;
  readonly #idleMs: number;
  readonly #handlers: Handlers;
  /** How many requests are being worked at, by process. */
  readonly #working = new OpenCounts();
  readonly #parameters = new HeldBytes("unfinished parameters", { perHost: 32 * MEBIBYTE, total: 64 * MEBIBYTE });
  readonly #answers = new HeldBytes("answers that were not read", { perHost: 64 * MEBIBYTE, total: 256 * MEBIBYTE });

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#idleMs = Math.min(IDLE_MS, options.idleMs ?? IDLE_MS);
    this.#handlers = options.handlers({
      idleMs: this.#idleMs,
      holdAnswer: (call) => this.#holdAnswer(call),
      failureOf: (error) => this.#failureOf(error),
    });
  }

  /** Answers one request of the process in this sandbox. Never throws. */
  answer(hostId: string, stream: ServerHttp2Stream, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    const gone = new AbortController();
    stream.once("close", () => gone.abort(new PlatformError("request.cancelled", "the environment cancelled its request")));
    this.#answer(hostId, stream, headers, gone).catch((error: unknown) => {
      if (stream.destroyed) return;
      const failure = this.#failureOf(error);
      // A part of the answer is sent already: the reader must not take it for the whole.
      if (stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else this.#respond(stream, failure.code === "internal" ? 500 : 400, JSON.stringify(failure));
    });
  }

  async #answer(
    hostId: string,
    stream: ServerHttp2Stream,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    gone: AbortController,
  ): Promise<void> {
    using _ = this.#working.open(hostId, WORK_AT_ONCE, (count) => {
      const message = `the platform still works at ${count} requests of this process, its limit; some of them were cancelled`;
      return new PlatformError("quota.exceeded", message);
    });
    const path = String(headers[":path"]);
    if (!isLinkPath(path))
      throw new PlatformError("route.not_found", `the platform has no '${path.slice(0, 100)}' for environments; update the server`);
    const limits = this.#options.parameters ?? parameterLimits(path);
    const parameters = await readParameters(stream, limits, (refuse) => this.#parameters.hold(hostId, refuse));
    const given = linkRequests[path].safeParse(parameters);
    if (!given.success) throw new PlatformError("request.invalid", `${path}: ${problemsOf(given.error, "the parameters")}`);
    const { signal } = gone;
    const refuse = (error: PlatformError) => gone.abort(error);
    const call = { hostId, instanceId: String(headers[LINK_INSTANCE] ?? ""), given: given.data, stream, signal, refuse };
    const answer = await this.#handlers[path](call as never);
    if (answer === ANSWERED) return;
    const hold = this.#holdAnswer(call);
    const text = JSON.stringify(answer ?? null);
    hold(text.length);
    if (signal.aborted) throw signal.reason;
    this.#respond(stream, 200, text);
  }

  /** Counts what is held of the answer to a request, until the request has ended. Beyond the limit, the request is refused. */
  #holdAnswer({ hostId, stream, refuse }: LinkRequest<LinkPath>): (bytes: number) => void {
    const holding = this.#answers.hold(hostId, (error) => {
      refuse(error);
      // The answer is there, and is not read.
      if (stream.writableEnded) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
    if (stream.destroyed) holding.release();
    else stream.once("close", () => holding.release());
    return (bytes) => holding.add(bytes);
  }

  #respond(stream: ServerHttp2Stream, status: number, json: string): void {
    if (stream.destroyed || stream.headersSent) return;
    stream.respond({ ":status": status, "content-type": "application/json" });
    stream.write(json);
    endAnswer(stream, this.#idleMs);
    // What the environment still sends is not needed.
    stream.resume();
  }

  #failureOf(error: unknown): LinkFailure {
    if (isPlatformError(error)) return { code: error.code, message: error.message, retryable: error.retryable };
    this.#options.onFailure(error);
    return { code: "internal", message: "an internal error of the platform; see the server's log", retryable: false };
  }
}

function isLinkPath(path: string): path is LinkPath {
  return Object.hasOwn(linkRequests, path);
}
