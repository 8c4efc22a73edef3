import { createHash } from "node:crypto";
import {
  type CallToolResult,
  canonicalJson,
  isObject,
  isPlatformError,
  messageOf,
  PlatformError,
  type ToolDescriptor,
} from "@aenv/contract";
import type { CallContext, LogLevel } from "../definition/definition.ts";
import { readBlock } from "../json/content-block.ts";
import { HttpTransport } from "./http.ts";
import { lost, McpError, McpPeer, type RequestOptions } from "./peer.ts";
import type { WorkspaceFiles } from "./program.ts";
import { changesOf, describeChanges, listTools, type PinnedTools, type ToolChanges } from "./tool-list.ts";
import type { McpTransport, RpcMessage, TransportEvents } from "./transport.ts";

/** One call of the agent. */
export interface McpCall {
  readonly tool: string;
  readonly arguments: unknown;
  readonly isError: boolean;
}

/** The state of an episode of a mounted server, as rewards and tasks see it. */
export interface McpState {
  /** What the agent has called so far, at most the last 10,000 calls. */
  readonly calls: readonly McpCall[];
  /** The working folder of the server; an error for a server that is reached by a URL. */
  readonly files: WorkspaceFiles;
  /** Calls a tool of the server as the environment, for example to see what the agent has changed. It is not among `calls`. */
  callTool(name: string, input?: object, options?: { readonly signal?: AbortSignal }): Promise<CallToolResult>;
}

/** How a server is reached in one episode. */
export interface ServerConnector {
  readonly files: WorkspaceFiles | null;
  /** The working folder as a URL, if it has one. */
  readonly root: string | null;
  readonly canFork: boolean;
  connect(events: TransportEvents): Promise<McpTransport>;
  /** Never fails. */
  close(): Promise<void>;
}

export interface MountedOptions {
  readonly connector: ServerConnector;
  readonly pinned: PinnedTools | undefined;
  readonly isStrict: boolean;
  readonly restarts: boolean;
  readonly startTimeoutMs: number;
}

/** A server and what was agreed with it. */
interface Session {
  readonly peer: McpPeer;
  readonly transport: McpTransport;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly server: ServerInfo;
}

export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

const PROTOCOL_VERSION = "2025-11-25";
const PROTOCOL_VERSIONS = new Set([PROTOCOL_VERSION, "2025-06-18", "2025-03-26", "2024-11-05"]);
const MAX_CALLS = 10_000;
const MAX_RESTARTS = 10;

/** The server of one episode, from its start to its end. */
export class Mounted implements McpState {
  readonly #options: MountedOptions;
  #session: Session | null = null;
  #restarting: Promise<Session> | null = null;
  #restarts = 0;
  #isClosed = false;
  #calls: McpCall[] = [];
  #history = "";
  #tools: readonly ToolDescriptor[] = [];
  #changes: ToolChanges | null = null;
  #isChangeChecked = true;

  private constructor(options: MountedOptions, history: string) {
    this.#options = options;
    this.#history = history;
  }

  /** Starts the server and reads its list of tools. If that fails, nothing is left. */
  static async open(options: MountedOptions, signal: AbortSignal, history = ""): Promise<Mounted> {
    const mounted = new Mounted(options, history);
    try {
      const session = await mounted.#start(signal);
      mounted.#session = session;
      await mounted.#readTools(session, signal);
      return mounted;
    } catch (error) {
      await mounted.close();
      throw error;
    }
  }

  /** The tools of the running server. */
  get tools(): readonly ToolDescriptor[] {
    return this.#tools;
  }

  get calls(): readonly McpCall[] {
    return this.#calls;
  }

  get canFork(): boolean {
    return this.#options.connector.canFork;
  }

  /** Stands for all calls and their results: equal for episodes that went alike. */
  get history(): string {
    return this.#history;
  }

  get files(): WorkspaceFiles {
    const { files } = this.#options.connector;
    if (files === null) throw new Error("a server that is reached by a URL has no working folder here");
    return files;
  }

  /** What the server says of itself. */
  get server(): ServerInfo {
    return this.#session?.server ?? { name: "", version: "" };
  }

  get capabilities(): Readonly<Record<string, unknown>> {
    return this.#session?.capabilities ?? {};
  }

  /** Throws `sandbox.lost` if the state of the episode is gone with its server. */
  assertAlive(): void {
    const end = this.#session?.peer.end ?? null;
    if (end !== null && !this.#options.restarts) throw lost(end);
  }

  async callTool(name: string, input: object = {}, options: { readonly signal?: AbortSignal } = {}): Promise<CallToolResult> {
    return this.#call(name, input, options);
  }

  /** A call of the agent. What the server refuses is a result; only a lost server is an error. */
  async runTool(name: string, input: object, { signal, log, progress }: CallContext<unknown>): Promise<CallToolResult> {
    const onLog = (level: string, data: unknown) => log(LEVELS.has(level) ? (level as LogLevel) : "info", data);
    const result = await this.#call(name, input, { signal, onProgress: progress, onLog });
    this.#calls.push({ tool: name, arguments: input, isError: result.isError === true });
    if (this.#calls.length > MAX_CALLS) this.#calls.shift();
    this.#history = createHash("sha256")
      .update(canonicalJson([this.#history, name, input, result]))
      .digest("hex");
    return result;
  }

  async #call(name: string, input: object, options: RequestOptions): Promise<CallToolResult> {
    try {
      return toResult(await this.request("tools/call", { name, arguments: input }, options));
    } catch (error) {
      if (error instanceof McpError) return failure(error.message);
      // With `restart`, the call is lost and the server is not.
      if (isPlatformError(error, "sandbox.lost") && this.#options.restarts && !this.#isClosed)
        return failure(`${error.message}. It has no state and is started again for the next call.`);
      throw error;
    }
  }

  async request(method: string, params: object, options: RequestOptions): Promise<RpcMessage> {
    return (await this.#current()).peer.request(method, params, options);
  }

  /** How the list of tools differs from the pinned one; null if it does not. The server may have changed it since the start. */
  async changes(): Promise<ToolChanges | null> {
    if (this.#isChangeChecked || this.#session === null || this.#session.peer.end !== null) return this.#changes;
    this.#isChangeChecked = true;
    await this.#readTools(this.#session, AbortSignal.timeout(this.#options.startTimeoutMs));
    return this.#changes;
  }

  get end(): string | null {
    return this.#session?.peer.end ?? null;
  }

  /** Ends the server. Never fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#session?.peer.finish("the episode has ended");
    await this.#restarting?.catch(() => {});
    await this.#session?.transport.close().catch(() => {});
    await this.#options.connector.close();
  }

  async #current(): Promise<Session> {
    const session = this.#session;
    if (session === null) throw lost("it was not started");
    const { end } = session.peer;
    if (end === null) return session;
    if (!this.#options.restarts || this.#isClosed) throw lost(end);
    if (this.#restarts >= MAX_RESTARTS) throw lost(`it ended ${MAX_RESTARTS + 1} times; the last time: ${end}`);
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = null;
    });
    return this.#restarting;
  }

  async #restart(): Promise<Session> {
    this.#restarts++;
    await this.#session?.transport.close();
    const session = await this.#start(undefined);
    this.#session = session;
    this.#isChangeChecked = false;
    return session;
  }

  async #start(signal: AbortSignal | undefined): Promise<Session> {
    const { connector, startTimeoutMs } = this.#options;
    const late = AbortSignal.timeout(startTimeoutMs);
    const peer = new McpPeer({
      roots: connector.root === null ? [] : [{ uri: connector.root, name: "workspace" }],
      onToolsChanged: () => {
        this.#isChangeChecked = false;
      },
    });
    const events = { onMessage: (message: RpcMessage) => peer.receive(message), onEnd: (reason: string) => peer.finish(reason) };
    const transport = await connector.connect(events);
    peer.use(transport);
    try {
      const either = signal === undefined ? late : AbortSignal.any([signal, late]);
      const answer = await peer.request("initialize", INITIALIZE, { signal: either });
      const version = String(answer.protocolVersion);
      if (!PROTOCOL_VERSIONS.has(version)) throw new Error(`it speaks the protocol version '${version.slice(0, 40)}'`);
      await peer.notify("notifications/initialized", {});
      const { name, version: release } = isObject(answer.serverInfo) ? answer.serverInfo : {};
      const server = { name: nameIn(name), version: nameIn(release) };
      return { peer, transport, capabilities: isObject(answer.capabilities) ? answer.capabilities : {}, server };
    } catch (error) {
      await transport.close();
      if (signal?.aborted) throw error;
      const why = late.aborted ? `it did not answer within ${startTimeoutMs} ms` : messageOf(error);
      throw new PlatformError("sandbox.start_failed", `the MCP server did not start: ${why}`, { cause: error });
    }
  }

  async #readTools({ peer, capabilities }: Session, signal: AbortSignal): Promise<void> {
    const { pinned, isStrict, startTimeoutMs } = this.#options;
    if (capabilities.tools === undefined) this.#tools = [];
    else this.#tools = await listTools(peer, { signal: AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]) });
    this.#changes = pinned === undefined ? null : changesOf(pinned, this.#tools);
    if (this.#changes === null || !isStrict) return;
    throw new PlatformError(
      "environment.invalid",
      `the MCP server's tools are not those of tools.json (${describeChanges(this.#changes)}); mount it again and publish a new version`,
    );
  }
}

const INITIALIZE = {
  protocolVersion: PROTOCOL_VERSION,
  capabilities: { roots: { listChanged: false } },
  clientInfo: { name: "aenv", version: "1" },
};

const LEVELS: ReadonlySet<string> = new Set(["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]);

function nameIn(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 200) : "";
}

/** The parts of a result that agents get. A block that MCP does not know becomes text. */
function toResult({ content, structuredContent, isError }: RpcMessage): CallToolResult {
  const blocks = Array.isArray(content) ? content : [];
  return {
    content: blocks.map((block) => readBlock(block) ?? { type: "text", text: JSON.stringify(block) }),
    ...(isObject(structuredContent) && { structuredContent }),
    ...(isError === true && { isError: true }),
  };
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** A server that is reached by a URL. */
export function httpConnector(options: ConstructorParameters<typeof HttpTransport>[0]): ServerConnector {
  return {
    files: null,
    root: null,
    canFork: false,
    connect: async (events) => new HttpTransport(options, events),
    close: async () => {},
  };
}
