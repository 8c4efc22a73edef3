import type { ServerHttp2Stream } from "node:http2";
import type { LinkFailure, LinkParameters, LinkPath, PlatformError } from "@aenv/contract";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered } from "../sandboxes/init-failure.ts";
import { endAnswer, sendContent } from "./content.ts";
import type { TaskSandboxes } from "./task-sandboxes.ts";

/** A request of an environment about one of its sandboxes. */
export interface LinkRequest<P extends LinkPath> {
  readonly hostId: string;
  readonly instanceId: string;
  readonly given: LinkParameters<P>;
  readonly stream: ServerHttp2Stream;
  readonly signal: AbortSignal;
  /** Ends the work at the request with this error. */
  readonly refuse: (error: PlatformError) => void;
}

/** The paths whose parameters name a sandbox. */
export type SandboxPath = Exclude<LinkPath, "/open" | "/snapshot/remove">;

export type Handlers = { readonly [P in LinkPath]: (call: LinkRequest<P>) => Promise<unknown> };

/** What handlers share. */
export interface HandlerOptions {
  readonly sandboxes: TaskSandboxes;
  /** A request of which nothing arrives or is read for so long ends. */
  readonly idleMs: number;
  /** Counts what is held of the answer to a request, until the request has ended. Beyond the limit, the request is refused. */
  readonly holdAnswer: (call: LinkRequest<LinkPath>) => (bytes: number) => void;
  /** The failure as the environment is told it. */
  readonly failureOf: (error: unknown) => LinkFailure;
}

/** The result of a handler that has sent its answer by itself. */
export const ANSWERED = Symbol();

/** Works in the sandbox that the request names. */
export async function inSandbox(
  { hostId, instanceId, given, signal }: LinkRequest<SandboxPath>,
  sandboxes: TaskSandboxes,
  work: (sandbox: OpenSandbox) => Promise<unknown>,
): Promise<unknown> {
  const sandbox = await sandboxes.use(hostId, instanceId, given.sandbox, signal);
  try {
    return await answered(work(sandbox));
  } finally {
    sandbox.release();
  }
}

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
