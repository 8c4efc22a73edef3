import type { ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import { pipeline } from "node:stream/promises";
import {
  type CommandEvent,
  isPlatformError,
  LINK_INSTANCE,
  type LinkFailure,
  type LinkParameters,
  type LinkPath,
  linkRequests,
  PlatformError,
  problemsOf,
} from "@aenv/contract";
import type { ExactFileInfo, FileInfo } from "@aenv/sandbox";
import { finished, outputOf } from "../sandboxes/command-output.ts";
import { endingFields } from "../sandboxes/ending-fields.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered, fromInit } from "../sandboxes/init-failure.ts";
import { endAnswer, receivedContent, sendContent } from "./content.ts";
import { writeEvent, writeFrame } from "./frames.ts";
import { HeldBytes } from "./held-bytes.ts";
import { type ParameterLimits, parameterLimits, readParameters } from "./request-body.ts";
import type { TaskSandboxes } from "./task-sandboxes.ts";

export interface RequestsOptions {
  readonly sandboxes: TaskSandboxes;
  /** The longest time of a command, and the default. */
  readonly commandTimeoutMs: number;
  /** Commands in one sandbox at a time. */
  readonly commandsAtOnce: number;
  readonly onFailure: (error: unknown) => void;
  /** What the parameters of a request may be; by default that depends on its path. */
  readonly parameters?: ParameterLimits;
  /** A request of which nothing arrives or is read for so long ends. */
  readonly idleMs?: number;
}

const MEBIBYTE = 1_024 ** 2;
const IDLE_MS = 10 * 60_000;
/** Requests of one process that are being worked at, those included that it has cancelled meanwhile. */
const WORK_AT_ONCE = 512;

interface Call<P extends LinkPath> {
  readonly hostId: string;
  readonly instanceId: string;
  readonly given: LinkParameters<P>;
  readonly stream: ServerHttp2Stream;
  readonly signal: AbortSignal;
  /** Ends the work at the request with this error. */
  readonly refuse: (error: PlatformError) => void;
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
  /** How many requests are being worked at, by process. */
  readonly #working = new Map<string, number>();
  readonly #parameters = new HeldBytes("unfinished parameters", { perHost: 32 * MEBIBYTE, total: 64 * MEBIBYTE });
  readonly #answers = new HeldBytes("answers that were not read", { perHost: 64 * MEBIBYTE, total: 256 * MEBIBYTE });
  readonly #idleMs: number;
  readonly #handlers: Handlers;

  constructor(options: RequestsOptions) {
    this.#options = options;
    const { sandboxes } = options;
    this.#idleMs = options.idleMs ?? Math.min(IDLE_MS, options.commandTimeoutMs);
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
          return this.#send(call, content);
        }),
      "/files/write": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { mode, append = false, user } = call.given;
          const more = { ...(mode !== undefined && { mode }), ...(user !== undefined && { user }) };
          const place = { path: path(call.given.path), abort: call.signal };
          await init.files.write({ ...place, content: receivedContent(call, this.#idleMs), mkdirs: true, append, ...more });
          return null;
        }),
      "/files/list": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { recursive = false, limit, exact = false } = call.given;
          const options = { path: path(call.given.path), abort: call.signal, recursive, limit, onEntry: this.#holdAnswer(call) };
          if (exact) {
            const { files, isTruncated } = await init.files.listExactly(options);
            return { files: files.map(exactFields), truncated: isTruncated };
          }
          const { files, isTruncated } = await init.files.list(options);
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
          this.#send(call, await init.files.pack({ path: path(call.given.path), abort: call.signal })),
        ),
      "/files/upload": (call) =>
        this.#in(call, async ({ init, path }) => {
          const { user } = call.given;
          const place = { path: path(call.given.path), abort: call.signal };
          await init.files.unpack({ ...place, archive: receivedContent(call, this.#idleMs), ...(user !== undefined && { user }) });
          return null;
        }),
      "/files/export": (call) =>
        this.#in(call, async ({ init }) =>
          this.#send(call, await init.files.export({ paths: receivedContent(call, this.#idleMs), abort: call.signal }), {
            readsRequest: true,
          }),
        ),
      "/files/import": (call) =>
        this.#in(call, async ({ init }) => {
          await init.files.import({ archive: receivedContent(call, this.#idleMs), abort: call.signal });
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
    const working = this.#working.get(hostId) ?? 0;
    if (working >= WORK_AT_ONCE) {
      const message = `the platform still works at ${working} requests of this process, its limit; some of them were cancelled`;
      this.#respond(stream, 400, JSON.stringify(this.#failureOf(new PlatformError("quota.exceeded", message))));
      return;
    }
    this.#working.set(hostId, working + 1);
    const answered = this.#answer(hostId, stream, headers, gone).catch((error: unknown) => {
      if (stream.destroyed) return;
      const failure = this.#failureOf(error);
      // A part of the answer is sent already: the reader must not take it for the whole.
      if (stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else this.#respond(stream, failure.code === "internal" ? 500 : 400, JSON.stringify(failure));
    });
    void answered.finally(() => {
      const left = (this.#working.get(hostId) ?? 1) - 1;
      if (left > 0) this.#working.set(hostId, left);
      else this.#working.delete(hostId);
    });
  }

  async #answer(
    hostId: string,
    stream: ServerHttp2Stream,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    gone: AbortController,
  ): Promise<void> {
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
  #holdAnswer({ hostId, stream, refuse }: Call<LinkPath>): (bytes: number) => void {
    const holding = this.#answers.hold(hostId, (error) => {
      refuse(error);
      // The answer is there, and is not read.
      if (stream.writableEnded) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
    if (stream.destroyed) holding.release();
    else stream.once("close", () => holding.release());
    return (bytes) => holding.add(bytes);
  }

  async #send(
    { stream }: Call<LinkPath>,
    content: AsyncIterable<Uint8Array>,
    { readsRequest = false }: { readonly readsRequest?: boolean } = {},
  ): Promise<typeof ANSWERED> {
    if (!readsRequest) stream.resume();
    await sendContent(stream, content, this.#idleMs);
    endAnswer(stream, this.#idleMs);
    return ANSWERED;
  }

  #respond(stream: ServerHttp2Stream, status: number, json: string): void {
    if (stream.destroyed || stream.headersSent) return;
    stream.respond({ ":status": status, "content-type": "application/json" });
    stream.write(json);
    endAnswer(stream, this.#idleMs);
    // What the environment still sends is not needed.
    stream.resume();
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

  async #follow(call: Call<"/run">, sandbox: OpenSandbox): Promise<unknown> {
    const { given, stream, signal } = call;
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
    // A command that runs may wait for its reader for as long as it may run.
    const write = (channel: "stdout" | "stderr", data: Uint8Array) => writeFrame(stream, channel, data, commandTimeoutMs);
    const tell = (event: CommandEvent) => writeEvent(stream, event, commandTimeoutMs);
    try {
      await tell({ type: "started", process: process.id, pid: process.pid });
      if (given.max_output_bytes === undefined) {
        for await (const part of outputOf(process, NEVER_MS)) {
          if (part === null) continue;
          if ("channel" in part) await write(part.channel, part.data);
          else await tell({ type: "ended", ...endingFields(part) });
        }
      } else {
        const onKept = this.#holdAnswer(call);
        const { stdout, stderr, process: _, ...ending } = await finished(process, given.max_output_bytes, onKept);
        if (signal.aborted) throw signal.reason;
        await write("stdout", stdout);
        await write("stderr", stderr);
        await tell({ type: "ended", ...endingFields(ending) });
      }
    } catch (error) {
      if (!stream.destroyed) await tell({ type: "failed", failure: this.#failureOf(fromInit(error)) });
    } finally {
      signal.removeEventListener("abort", kill);
      if (signal.aborted) kill();
      mine.delete(process.id);
      endAnswer(stream, commandTimeoutMs);
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

function fileFields({ path, type, size, mode, uid, gid, modifiedMs, target }: FileInfo): object {
  return { path, type, size, mode, uid, gid, modifiedAt: new Date(modifiedMs).toISOString(), ...(target !== undefined && { target }) };
}

function exactFields(file: ExactFileInfo): object {
  const { modifiedNs, changedMs, inode, attributes } = file;
  return {
    ...fileFields(file),
    modifiedNs,
    changedAt: new Date(changedMs).toISOString(),
    ...(inode !== undefined && { inode }),
    ...(attributes !== undefined && { attributes }),
  };
}
