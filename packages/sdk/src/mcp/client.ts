import { type CallToolResult, isObject, ReadLimitExceeded, type ToolDescriptor } from "@aenv/contract";
import { AnswerLimitError } from "../errors/errors.ts";
import { ProtocolError } from "../errors/rpc-errors.ts";
import { MAX_ANSWER_BYTES } from "../http/http.ts";
import type { RpcMessage } from "./json-rpc.ts";
import { type McpOptions, McpSession } from "./session.ts";

/** Progress of a tool call; `total` and `message` only if the tool reports them. */
export interface ToolProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A line that a tool wrote to its log. */
export interface ToolLog {
  readonly level: string;
  readonly data: unknown;
  readonly logger?: string;
}

export interface McpCallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ToolProgress) => void) | undefined;
  readonly onLog?: ((log: ToolLog) => void) | undefined;
}

/** Protects against a server whose cursors never end. */
const MAX_PAGES = 1_000;
const MAX_TOOLS = 10_000;

/**
 * Tools over MCP's Streamable HTTP and nothing else: one POST per call, in place of a general MCP client.
 * Throws StatusError, TransportError, RpcError, ProtocolError, or the signal's reason.
 */
export class McpClient {
  readonly #session: McpSession;
  readonly #options: McpOptions;

  constructor(options: McpOptions) {
    this.#options = options;
    this.#session = new McpSession(options);
  }

  /** All pages of `tools/list`, which together have the limits of one answer. */
  async listTools(options: Pick<McpCallOptions, "timeoutMs" | "signal">): Promise<ToolDescriptor[]> {
    const tools: ToolDescriptor[] = [];
    const { url, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options;
    let params: { cursor?: string } = {};
    let length = 0;
    for (let page = 0; page < MAX_PAGES; page++) {
      const result = await this.#session.request({ method: "tools/list", params, rule: "idempotent", ...options });
      if (!isObject(result) || !Array.isArray(result.tools)) throw new ProtocolError("the response to tools/list has no list of tools");
      if (tools.length + result.tools.length > MAX_TOOLS) throw new ProtocolError(`tools/list has more than ${MAX_TOOLS} tools`);
      for (const tool of result.tools) tools.push(readTool(tool));
      if (typeof result.nextCursor !== "string" || result.nextCursor === "") return tools;
      length += JSON.stringify(result).length;
      if (length > maxAnswerBytes) throw new AnswerLimitError({ method: "POST", url }, new ReadLimitExceeded("bytes", maxAnswerBytes));
      params = { cursor: result.nextCursor };
    }
    throw new ProtocolError(`tools/list has more than ${MAX_PAGES} pages`);
  }

  /** Never sent twice, unless the first request was certainly not sent. */
  async callTool(name: string, args: Readonly<Record<string, unknown>>, options: McpCallOptions): Promise<CallToolResult> {
    const { timeoutMs, signal } = options;
    const params = { name, arguments: args };
    const onMessage = listener(options);
    const result = await this.#session.request({ method: "tools/call", params, rule: "once", timeoutMs, signal, onMessage });
    if (!isObject(result)) throw new ProtocolError("the response to tools/call is not an object");
    if (!Array.isArray(result.content)) return { ...result, content: [] };
    return result as CallToolResult;
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

function listener({ onProgress, onLog }: McpCallOptions): ((message: RpcMessage) => void) | undefined {
  if (onProgress === undefined && onLog === undefined) return undefined;
  return ({ method, params }) => {
    const { progressToken: _, ...info } = params;
    if (method === "notifications/progress") onProgress?.(info as ToolProgress & typeof info);
    else if (method === "notifications/message") onLog?.(info as ToolLog & typeof info);
  };
}

/** Some servers send null for absent fields. */
function readTool(tool: unknown): ToolDescriptor {
  if (!isObject(tool) || typeof tool.name !== "string") throw new ProtocolError("the response to tools/list has a tool without a name");
  const present = Object.entries(tool).filter(([, value]) => value !== null);
  return { name: tool.name, inputSchema: { type: "object" }, ...Object.fromEntries(present) };
}
