import type { ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import { pipeline } from "node:stream/promises";
import {
  isPlatformError,
  LINK_INSTANCE,
  type LinkFailure,
  type LinkParameters,
  type LinkPath,
  linkRequests,
  PlatformError,
  problemsOf,
} from "@aenv/contract";
import type { FileInfo } from "@aenv/sandbox";
import { finished, outputOf } from "../sandboxes/command-output.ts";
import { endingFields } from "../sandboxes/ending-fields.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered, fromInit } from "../sandboxes/init-failure.ts";
import { writeEvent, writeFrame } from "./frames.ts";
import { readParameters } from "./request-body.ts";
import type { TaskSandboxes } from "./task-sandboxes.ts";

export interface RequestsOptions {
  readonly sandboxes: TaskSandboxes;
  /** The longest time of a command, and the default. */
  readonly commandTimeoutMs: number;
  /** Commands in one sandbox at a time. */
  readonly commandsAtOnce: number;
  readonly onFailure: (error: unknown) => void;
}

interface Call<P extends LinkPath> {
  readonly hostId: string;
  readonly instanceId: string;
  readonly given: LinkParameters<P>;
  readonly stream: ServerHttp2Stream;
  readonly signal: AbortSignal;
}

type Handlers = { readonly [P in LinkPath]: (call: Call<P>) => Promise<unknown> };

/** The handler has answered by itself. */
const ANSWERED = Symbol();

/** Answers the requests of environments about their sandboxes. */
export class LinkRequests {
  readonly #options: RequestsOptions;
  /** How many commands run or are being started, by sandbox. */
  readonly #running = new Map<string, number>();
  /** The commands that run, by sandbox. */
  readonly #processes = new Map<string, Set<number>>();
  readonly #handlers: Handlers;

  constructor(options: RequestsOptions) {
    this.#options = options;
    const { sandboxes } = options;
    this.#handlers = {
      "/open": async (call) => {
        const { id, spec } = await sandboxes.open(call.hostId, call.instanceId, call.given, call.signal);
        return { id, image: spec.image };
      },
      "/close": async ({ hostId, instanceId, given }) => {
        await sandboxes.closeOne(hostId, instanceId, given.sandbox);
        return null;
      },
      "/egress": async ({ hostId, instanceId, given }) => {
        await sandboxes.setEgress(hostId, instanceId, given.sandbox, given.egress);
        return null;
      },
      "/snapshot": async ({ hostId, instanceId, given, signal }) => ({
        snapshot: await sandboxes.store(hostId, instanceId, given.sandbox, signal),
      }),
      "/snapshot/remove": async ({ hostId, given }) => {
        await sandboxes.removeSnapshot(given.snapshot, hostId);
        return null;
      },
      "/run": (call) => this.#run(call),
      "/signal": (call) =>
        this.#in(call, async ({ init }) => {
          const { process, signal } = call.given;
          await init.signal(process, signal as NodeJS.Signals, { group: true });
          return null;
        }),
      "/files/read": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { offset, length } = call.given;
          const part = { ...(offset !== undefined && { offset }), ...(length !== undefined && { length }) };
          const { content } = await init.files.open({ path: path(call.given.path), abort: call.signal, ...part });
          return send(call.stream, content);
        }),
      "/files/write": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { mode, append = false, user } = call.given;
          const more = { ...(mode !== undefined && { mode }), ...(user !== undefined && { user }) };
          const place = { path: path(call.given.path), abort: call.signal };
          await init.files.write({ ...place, content: contentOf(call), mkdirs: true, append, ...more });
          return null;
        }),
      "/files/list": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { recursive = false, limit } = call.given;
          const { files, isTruncated } = await init.files.list({ path: path(call.given.path), recursive, limit, abort: call.signal });
          return { files: files.map(fileFields), truncated: isTruncated };
        }),
      "/files/stat": (call) =>
        this.#in(call, async ({ init, path }) =>
          fileFields(await init.files.stat({ path: path(call.given.path), follow: call.given.follow ?? false })),
        ),
      "/files/mkdir": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { mode } = call.given;
          await init.files.mkdir({ path: path(call.given.path), parents: true, ...(mode !== undefined && { mode }) });
          return null;
        }),
      "/files/remove": (call) =>
        this.#in(call, async ({ init, path }) => {
          await init.files.remove({ path: path(call.given.path), recursive: call.given.recursive ?? false });
          return null;
        }),
      "/files/rename": (call) =>
        this.#in(call, async ({ init, path }) => {
          await init.files.rename({ path: path(call.given.path), to: path(call.given.to) });
          return null;
        }),
      "/files/download": (call) =>
        this.#in(call, async ({ init, path }) =>
          send(call.stream, await init.files.pack({ path: path(call.given.path), abort: call.signal })),
        ),
      "/files/upload": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { user } = call.given;
          const place = { path: path(call.given.path), abort: call.signal };
          await init.files.unpack({ ...place, archive: contentOf(call), ...(user !== undefined && { user }) });
          return null;
        }),
    };
  }

  ownCommands(sandboxId: string): ReadonlySet<number> {
    return this.#processes.get(sandboxId) ?? NONE;
  }

  /** Answers one request of the process in this sandbox. Never throws. */
  answer(hostId: string, stream: ServerHttp2Stream, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    const gone = new AbortController();
    stream.once("close", () => gone.abort(new PlatformError("request.cancelled", "the environment cancelled its request")));
    this.#answer(hostId, stream, headers, gone.signal).catch((error: unknown) => {
      if (stream.destroyed) return;
      const failure = this.#failureOf(error);
      // A part of the answer is sent already: the reader must not take it for the whole.
      if (stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else respond(stream, failure.code === "internal" ? 500 : 400, failure);
    });
  }

  async #answer(
    hostId: string,
    stream: ServerHttp2Stream,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    signal: AbortSignal,
  ): Promise<void> {
    const path = String(headers[":path"]);
    if (!isLinkPath(path)) throw new PlatformError("route.not_found", `the platform has no '${path}' for environments; update the server`);
    const given = linkRequests[path].safeParse(await readParameters(stream));
    if (!given.success) throw new PlatformError("request.invalid", `${path}: ${problemsOf(given.error, "the parameters")}`);
    const call = { hostId, instanceId: String(headers[LINK_INSTANCE] ?? ""), given: given.data, stream, signal };
    const answer = await this.#handlers[path](call as never);
    if (answer !== ANSWERED) respond(stream, 200, answer);
  }

  async #in<P extends Exclude<LinkPath, "/open" | "/snapshot/remove">>(
    call: Call<P>,
    work: (sandbox: OpenSandbox) => Promise<unknown>,
  ): Promise<unknown> {
    const { sandbox: id } = call.given as { readonly sandbox: string };
    const sandbox = await this.#options.sandboxes.use(call.hostId, call.instanceId, id, call.signal);
    try {
      return await answered(work(sandbox));
    } finally {
      sandbox.release();
    }
  }

  /** A command ends with its request, so none is left when the environment or the connection is gone. */
  #run(call: Call<"/run">): Promise<unknown> {
    const { sandbox: id } = call.given;
    const { commandsAtOnce } = this.#options;
    const running = this.#running.get(id) ?? 0;
    if (running >= commandsAtOnce)
      throw new PlatformError("quota.exceeded", `${running} commands run in the sandbox, the server's limit (commandsPerInstance)`);
    this.#running.set(id, running + 1);
    return this.#in(call, (sandbox) => this.#follow(call, sandbox)).finally(() => {
      const left = (this.#running.get(id) ?? 1) - 1;
      if (left > 0) this.#running.set(id, left);
      else this.#running.delete(id);
      if (left === 0) this.#processes.delete(id);
    });
  }

  async #follow({ given, stream, signal }: Call<"/run">, sandbox: OpenSandbox): Promise<unknown> {
    const { commandTimeoutMs } = this.#options;
    const { defaults, init, path } = sandbox;
    const user = given.user ?? defaults.user;
    const process = await init.spawn({
      argv: typeof given.command === "string" ? ["sh", "-c", given.command] : given.command,
      cwd: given.cwd === undefined ? defaults.cwd : path(given.cwd),
      env: { ...defaults.env, ...given.env },
      stdin: given.has_input,
      deadlineMs: Math.min(given.timeout_ms ?? commandTimeoutMs, commandTimeoutMs),
      ...(user !== undefined && { user }),
      ...(given.terminal !== undefined && { pty: given.terminal }),
    });
    const mine = this.#processes.get(given.sandbox) ?? new Set();
    this.#processes.set(given.sandbox, mine.add(process.id));
    const kill = () => void init.signal(process.id, "SIGKILL", { group: true }).catch(() => {});
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    // The input may end before the command, or after it: its exit is what counts.
    if (given.has_input) pipeline(stream, process.stdin, { signal }).catch(() => {});
    else stream.resume();
    stream.respond({ ":status": 200 });
    try {
      await writeEvent(stream, { type: "started", process: process.id, pid: process.pid });
      if (given.max_output_bytes === undefined) {
        for await (const part of outputOf(process, NEVER_MS)) {
          if (part === null) continue;
          if ("channel" in part) await writeFrame(stream, part.channel, part.data);
          else await writeEvent(stream, { type: "ended", ...endingFields(part) });
        }
      } else {
        const { stdout, stderr, process: _, ...ending } = await finished(process, given.max_output_bytes);
        await writeFrame(stream, "stdout", stdout);
        await writeFrame(stream, "stderr", stderr);
        await writeEvent(stream, { type: "ended", ...endingFields(ending) });
      }
    } catch (error) {
      if (!stream.destroyed) await writeEvent(stream, { type: "failed", failure: this.#failureOf(fromInit(error)) });
    } finally {
      signal.removeEventListener("abort", kill);
      if (signal.aborted) kill();
      mine.delete(process.id);
      stream.end();
    }
    return ANSWERED;
  }

  #failureOf(error: unknown): LinkFailure {
    if (isPlatformError(error)) return { code: error.code, message: error.message, retryable: error.retryable };
    this.#options.onFailure(error);
    return { code: "internal", message: "an internal error of the platform; see the server's log", retryable: false };
  }
}

const NONE: ReadonlySet<number> = new Set();

/** The longest time of a timer. */
const NEVER_MS = 2 ** 31 - 1;

function isLinkPath(path: string): path is LinkPath {
  return Object.hasOwn(linkRequests, path);
}

function respond(stream: ServerHttp2Stream, status: number, body: unknown): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond({ ":status": status, "content-type": "application/json" });
  stream.end(JSON.stringify(body ?? null));
  // What the environment still sends is not needed.
  stream.resume();
}

async function send(stream: ServerHttp2Stream, content: NodeJS.ReadableStream): Promise<typeof ANSWERED> {
  stream.resume();
  stream.respond({ ":status": 200, "content-type": "application/octet-stream" });
  await pipeline(content, stream);
  return ANSWERED;
}

/** The bytes after the parameters. A request that is broken off is an error, not the end of the content. */
async function* contentOf({ stream, signal }: Pick<Call<LinkPath>, "stream" | "signal">): AsyncGenerator<Uint8Array> {
  for await (const part of stream.iterator({ destroyOnReturn: false })) yield part as Uint8Array;
  if (stream.aborted || signal.aborted) throw new PlatformError("request.cancelled", "the environment cancelled its request");
}

function fileFields({ path, type, size, mode, uid, gid, modifiedMs, target }: FileInfo): object {
  return { path, type, size, mode, uid, gid, modifiedAt: new Date(modifiedMs).toISOString(), ...(target !== undefined && { target }) };
}
