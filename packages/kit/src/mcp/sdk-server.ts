import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { messageOf } from "@aenv/contract";
import type { McpHttpHandler, McpServer, RegisteredTool, ServerContext, ToolAnnotations } from "@modelcontextprotocol/server";
import type { CompiledEnvironment, CompiledTool, Toolset } from "../compile/environment.ts";
import { describedOnly } from "../compile/schema.ts";
import type { StandardSchemaV1 } from "../definition/standard-schema.ts";
import type { CallHooks } from "../instances/call.ts";
import type { ToolSurface } from "../instances/tool-surface.ts";
import { toLogData } from "../json/to-json.ts";
import { isPlatformFault } from "../sandboxes/faults.ts";
import { argumentsText } from "./arguments-text.ts";
import { faultOf } from "./fault.ts";
import { Sessions } from "./session.ts";

type McpSdk = typeof import("@modelcontextprotocol/server");

// Loaded when the first request needs it: that takes longer than the rest of an environment's start.
let loading: Promise<McpSdk> | undefined;
const loadSdk = () => (loading ??= import("@modelcontextprotocol/server"));

/** The body of the request that a call belongs to: the SDK passes on only the parsed message. */
const requestText = new AsyncLocalStorage<string>();

export interface SdkServerOptions {
  readonly pingMs: number;
  readonly maxSessions: number;
}

/** Serves the whole MCP protocol for one instance with the MCP SDK: all revisions, sessions, and the exact form of every error. */
export class SdkServer {
  readonly sessions: Sessions;
  readonly #environment: CompiledEnvironment;
  readonly #instance: ToolSurface;
  readonly #options: SdkServerOptions;
  #handler: McpHttpHandler | undefined;

  constructor(environment: CompiledEnvironment, instance: ToolSurface, options: SdkServerOptions) {
    this.#environment = environment;
    this.#instance = instance;
    this.#options = options;
    this.sessions = new Sessions(options.maxSessions);
  }

  /** `text` is the request body, `body` the parsed JSON; undefined if there is none. */
  async answer(request: Request, text: string | undefined, body: unknown): Promise<Response> {
    const sdk = await loadSdk();
    return requestText.run(text ?? "", () => this.#answer(sdk, request, body));
  }

  async #answer(sdk: McpSdk, request: Request, body: unknown): Promise<Response> {
    const parsed = body === undefined ? {} : { parsedBody: body };
    // Checked before the session: a body that is not JSON is refused whatever the session.
    const isNotJson = request.method === "POST" && !sdk.isJsonContentType(request.headers.get("content-type"));
    if (isNotJson) return this.#stateless(sdk).fetch(request);
    const sessionId = request.headers.get("mcp-session-id");
    if (sessionId !== null && (await isLegacy(sdk, request, body))) {
      const session = this.sessions.find(sessionId);
      if (session === null) return notFound(body);
      session.tools.offer(this.#instance);
      return session.transport.handleRequest(request, parsed);
    }
    if (isInitialize(body) && (await isLegacy(sdk, request, body))) return this.#openSession(sdk, request, body);
    return this.#stateless(sdk).fetch(request, parsed);
  }

  #stateless(sdk: McpSdk): McpHttpHandler {
    this.#handler ??= sdk.createMcpHandler(
      () => {
        const server = buildServer(sdk, this.#environment, this.#instance);
        new OfferedTools(server).offer(this.#instance);
        return server;
      },
      { keepAliveMs: this.#options.pingMs },
    );
    return this.#handler;
  }

  async #openSession(sdk: McpSdk, request: Request, body: unknown): Promise<Response> {
    const server = buildServer(sdk, this.#environment, this.#instance);
    const tools = new OfferedTools(server);
    tools.offer(this.#instance);
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID().replaceAll("-", ""),
      keepAliveMs: this.#options.pingMs,
      onsessioninitialized: (id) => this.sessions.add({ id, transport, server, tools, calls: new Map(), logLevel: "debug" }),
      onsessionclosed: (id) => this.sessions.end(id),
    });
    await server.connect(transport);
    return transport.handleRequest(request, { parsedBody: body });
  }

  async close(): Promise<void> {
    this.sessions.endAll();
    await this.#handler?.close();
  }
}

function buildServer(sdk: McpSdk, { name, version }: CompiledEnvironment, instance: ToolSurface): McpServer {
  const more = passedOn.filter(({ capability }) => instance.mcpCapabilities[capability] !== undefined);
  const server = new sdk.McpServer(
    { name, version },
    {
      capabilities: {
        tools: { listChanged: false },
        logging: {},
        // Subscriptions and notifications of changes are not passed on.
        ...Object.fromEntries(more.map(({ capability }) => [capability, {}])),
      },
      // A new episode with other tools is one change, not one per tool.
      debouncedNotificationMethods: ["notifications/tools/list_changed"],
    },
  );
  keepFaults(sdk, server);
  for (const { methods } of more) for (const method of methods) passOn(sdk, server, method, instance);
  return server;
}

/** What an environment may offer beside tools, and the methods of it. */
const passedOn = [
  { capability: "resources", methods: ["resources/list", "resources/templates/list", "resources/read"] },
  { capability: "prompts", methods: ["prompts/list", "prompts/get"] },
  { capability: "completions", methods: ["completion/complete"] },
] as const;

type PassedMethod = (typeof passedOn)[number]["methods"][number];

function passOn(sdk: McpSdk, { server }: McpServer, method: PassedMethod, instance: ToolSurface): void {
  const answer = async ({ params = {} }: { readonly params?: object }, context: ServerContext): Promise<object> => {
    try {
      return await instance.requestMcp(method, params, hooksFor(context));
    } catch (error) {
      if (isPlatformFault(error)) {
        const { code, message, data } = faultOf(error);
        throw new sdk.ProtocolError(code, message, data);
      }
      throw new sdk.ProtocolError(INVALID_PARAMS, messageOf(error));
    }
  };
  // The answers are those of the environment, whatever the method.
  server.setRequestHandler(method, answer as never);
}

const INVALID_PARAMS = -32_602;

/** Failures of the platform by their messages, until the SDK has asked for the result of each. */
const faults = new Map<string, unknown>();

/** The SDK makes a result of every error of a tool. A failure of the platform stays an error. */
function keepFaults(sdk: McpSdk, server: McpServer): void {
  const makes = server as unknown as { createToolError(message: string): unknown };
  const toResult = makes.createToolError.bind(server);
  makes.createToolError = (message) => {
    if (!faults.has(message)) return toResult(message);
    const { code, data, message: text } = faultOf(faults.get(message));
    faults.delete(message);
    throw new sdk.ProtocolError(code, text, data);
  };
}

/** Keeps the tools that are registered at a server of the SDK equal to those of the instance's current episode. */
class OfferedTools {
  readonly #server: McpServer;
  #offered: Toolset | null = null;
  #registered: RegisteredTool[] = [];

  constructor(server: McpServer) {
    this.#server = server;
  }

  offer(instance: ToolSurface): void {
    if (this.#offered === instance.tools) return;
    for (const tool of this.#registered) tool.remove();
    this.#registered = [...instance.tools.values()].map((tool) => registerTool(this.#server, tool, instance));
    this.#offered = instance.tools;
  }
}

function registerTool(server: McpServer, tool: CompiledTool, instance: ToolSurface): RegisteredTool {
  const { definition, output, input } = tool;
  const config = {
    ...(definition.title !== undefined && { title: definition.title }),
    ...(definition.description !== undefined && { description: definition.description }),
    ...(definition.annotations !== undefined && { annotations: definition.annotations as ToolAnnotations }),
    // The SDK checks the arguments with the author's schema, unless a role calls: whether it may is checked first. The SDK only advertises the output schema: runTool checks the result.
    inputSchema: (instance.role === null ? input.standard : describedOnly(input.input)) as StandardSchemaWithJson,
    ...(output !== null && { outputSchema: describedOnly(output.advertised) as StandardSchemaWithJson }),
  };
  return server.registerTool(definition.name, config, async (args: unknown, context: ServerContext) => {
    try {
      const result = await instance.runTool(tool, args, hooksFor(context));
      return result as Awaited<ReturnType<Parameters<typeof server.registerTool>[2]>>;
    } catch (error) {
      const message = `${randomUUID()}: ${messageOf(error)}`;
      faults.set(message, error);
      throw new Error(message);
    }
  });
}

type StandardSchemaWithJson = StandardSchemaV1 & Parameters<McpServer["registerTool"]>[1]["inputSchema"];

function hooksFor(context: ServerContext): CallHooks {
  const { signal, id, _meta: meta } = context.mcpReq;
  const body = requestText.getStore();
  const controller = new AbortController();
  signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
  const token = meta?.progressToken;
  return {
    controller,
    ...(body !== undefined && { inputText: () => argumentsText(body, id) }),
    log: (level, data) => void context.mcpReq.log(level, toLogData(data)).catch(() => {}),
    progress: (progress, total, message) => {
      if (token === undefined) return;
      const params = { progressToken: token, progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
      void context.mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
    },
  };
}

/** A request without a body cannot be of the 2026 revision. */
async function isLegacy(sdk: McpSdk, request: Request, body: unknown): Promise<boolean> {
  return body === undefined || sdk.isLegacyRequest(request, body);
}

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && (body as { method?: unknown }).method === "initialize";
}

function notFound(body: unknown): Response {
  const id = (body as { id?: unknown } | undefined)?.id ?? null;
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id }, { status: 404 });
}
