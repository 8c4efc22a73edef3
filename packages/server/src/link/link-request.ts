import type { ServerHttp2Stream } from "node:http2";
import type { LinkFailure, LinkParameters, LinkPath, PlatformError } from "@aenv/contract";
import { endAnswer, sendContent } from "./content.ts";

/** A request of the process of an environment, for one of its instances. */
export interface LinkRequest<P extends LinkPath> {
  readonly hostId: string;
  /** The instance that the process names. Whether it runs in this process is the handler's to check. */
  readonly instanceId: string;
  readonly given: LinkParameters<P>;
  readonly stream: ServerHttp2Stream;
  readonly signal: AbortSignal;
  /** Ends the work at the request with this error. */
  readonly refuse: (error: PlatformError) => void;
}

/** What answers each path. A result is sent as JSON, unless it is `ANSWERED`. */
export type Handlers = { readonly [P in LinkPath]: (call: LinkRequest<P>) => Promise<unknown> };

/** What handlers share. */
export interface LinkTools {
  /** A request of which nothing arrives or is read for so long ends. */
  readonly idleMs: number;
  /** Counts what is held of the answer to a request, until the request has ended. Beyond the limit, the request is refused. */
  readonly holdAnswer: (call: LinkRequest<LinkPath>) => (bytes: number) => void;
  /** The failure as the environment is told it. */
  readonly failureOf: (error: unknown) => LinkFailure;
}

/** The result of a handler that has sent its answer by itself. */
export const ANSWERED = Symbol();

/** Answers with bytes. What the request still sends is not needed, unless it is being read. */
export async function answerContent(
  { stream }: LinkRequest<LinkPath>,
  content: AsyncIterable<Uint8Array>,
  { idleMs, readsRequest = false }: { readonly idleMs: number; readonly readsRequest?: boolean },
): Promise<typeof ANSWERED> {
  if (!readsRequest) stream.resume();
  await sendContent(stream, content, idleMs);
  endAnswer(stream, idleMs);
  return ANSWERED;
}
