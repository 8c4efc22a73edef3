import { isObject, isPlatformError, messageOf } from "@aenv/contract";
import * as z from "zod";
import { InvalidMessage, parseAction } from "./messages.ts";
import { CapacityError } from "./registry.ts";
import { toolList } from "./results.ts";
import type { OpenEnvSession } from "./session.ts";

type Id = string | number | null;
type Params = Readonly<Record<string, unknown>>;

/** Which session a request uses: the connection's own, or the one that its parameters name. */
export interface McpSessions {
  /** Calls `work` with the session of a request. One that is made for the request alone is ended after it. */
  use<T>(sessionId: string | undefined, work: (session: OpenEnvSession) => Promise<T>): Promise<T>;
  create(): Promise<OpenEnvSession>;
  end(sessionId: string): Promise<void>;
}

/** An error of JSON-RPC. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown = null) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const request = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
  id: z.union([z.string(), z.number(), z.null()]).default(null),
});

/** Answers a request of OpenEnv's dialect: JSON-RPC with MCP's names, but without its handshake and streams. */
export async function answerMcp(message: unknown, sessions: McpSessions): Promise<Params> {
  const parsed = request.safeParse(message);
  if (!parsed.success)
    return failure(
      null,
      new RpcError(
        -32600,
        `Invalid Request: ${parsed.error.issues.map(({ path, message: text }) => `${path.join(".")}: ${text}`).join("; ")}`,
      ),
    );
  const { method, params, id } = parsed.data;
  try {
    return { jsonrpc: "2.0", id, result: await call(method, params, sessions) };
  } catch (error) {
    return failure(id, toRpcError(error));
  }
}

/** The answer to a text that is not JSON. */
export function parseFailure(): Params {
  return failure(null, new RpcError(-32700, "Parse error: the request is not JSON"));
}

async function call(method: string, params: Params, sessions: McpSessions): Promise<unknown> {
  const sessionId = textIn(params, "session_id");
  switch (method) {
    case "tools/list":
      return sessions.use(sessionId, async (session) => ({ tools: toolList(await session.listTools()) }));
    case "tools/call": {
      const name = textIn(params, "name");
      if (name === undefined) throw new RpcError(-32602, "Missing 'name': the name of the tool");
      const action = parseAction({ type: "call_tool", tool_name: name, arguments: params.arguments ?? {} });
      return sessions.use(sessionId, async (session) => {
        const { observation } = await session.step(action);
        if (isObject(observation.error))
          throw new RpcError(-32603, String(observation.error.message), { error_type: observation.error.error_type });
        return observation.result;
      });
    }
    case "openenv/session/create":
      return { session_id: (await sessions.create()).id };
    case "openenv/session/close": {
      if (sessionId === undefined) throw new RpcError(-32602, "Missing 'session_id'");
      await sessions.end(sessionId);
      return { session_id: sessionId, closed: true };
    }
    default:
      throw new RpcError(-32601, `Method not found: ${method}`);
  }
}

function textIn(params: Params, name: string): string | undefined {
  const value = params[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new RpcError(-32602, `'${name}' must be a string`);
  return value;
}

function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  if (error instanceof InvalidMessage) return new RpcError(-32602, error.message);
  if (error instanceof CapacityError)
    return new RpcError(-32000, error.message, { active_sessions: error.active, max_sessions: error.max });
  if (isPlatformError(error, "quota.exceeded")) return new RpcError(-32000, error.message, error.details);
  return new RpcError(-32603, messageOf(error));
}

function failure(id: Id, { code, message, data }: RpcError): Params {
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}
