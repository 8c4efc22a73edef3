import { isObject, isPlatformError, PlatformError } from "@aenv/contract";
import * as z from "zod";
import { answerMcp, type McpSessions, parseFailure } from "./mcp.ts";
import { InvalidMessage, parse, parseAction, parseReset, tryMessage } from "./messages.ts";
import type { OpenEnvSession } from "./session.ts";

/** The codes of error messages. After the last three the connection is closed. */
export type ErrorFrame =
  | "INVALID_JSON"
  | "UNKNOWN_TYPE"
  | "VALIDATION_ERROR"
  | "EXECUTION_ERROR"
  | "CAPACITY_REACHED"
  | "FACTORY_ERROR"
  | "SESSION_ERROR";

export interface Reply {
  /** Null sends nothing. */
  readonly text: string | null;
  /** True if the connection ends with it. */
  readonly isLast: boolean;
}

const withData = z.strictObject({ type: z.string(), data: z.record(z.string(), z.unknown()).optional() });
const withRequiredData = withData.required({ data: true });
const withoutData = z.strictObject({ type: z.string(), data: z.unknown().optional() });

/** Answers one message on `/ws`. Never throws. */
export async function answerMessage(
  text: string,
  session: OpenEnvSession,
  mcp: McpSessions,
  onFailure: (error: unknown) => void,
): Promise<Reply> {
  const message = tryMessage(text);
  if (message === undefined) return errorReply("INVALID_JSON", "Invalid JSON: the message cannot be parsed");
  if (!isObject(message)) return { ...errorReply("SESSION_ERROR", "a message must be a JSON object"), isLast: true };
  try {
    switch (message.type) {
      case "reset":
        return reply("observation", await session.reset(parseReset(parse(withData, message).data)));
      case "step":
        return reply("observation", await session.step(parseAction(parse(withRequiredData, message).data)));
      case "state":
        parse(withoutData, message);
        return reply("state", await session.state());
      case "mcp":
        return reply("mcp", await answerMcp(parse(withRequiredData, message).data, mcp));
      case "close":
        return { text: null, isLast: true };
      default:
        return errorReply("UNKNOWN_TYPE", `Unknown message type: ${String(message.type)}; there are reset, step, state, mcp, close`);
    }
  } catch (error) {
    if (error instanceof InvalidMessage) return errorReply("VALIDATION_ERROR", error.message, { errors: error.problems });
    return errorReply("EXECUTION_ERROR", shownMessage(error, onFailure), {
      ...(isPlatformError(error) && { error_code: error.code, retryable: error.retryable }),
    });
  }
}

/** Answers one message on the WebSocket `/mcp`: JSON-RPC alone. */
export async function answerRpc(text: string, mcp: McpSessions): Promise<Reply> {
  const message = tryMessage(text);
  return { text: JSON.stringify(message === undefined ? parseFailure() : await answerMcp(message, mcp)), isLast: false };
}

export function errorReply(code: ErrorFrame, message: string, more: Readonly<Record<string, unknown>> = {}): Reply {
  return { text: JSON.stringify({ type: "error", data: { message, code, ...more } }), isLast: false };
}

/** The message of an error that clients may read; unexpected errors go to the log only. */
export function shownMessage(error: unknown, onFailure: (error: unknown) => void): string {
  if (isPlatformError(error) && error.code !== "internal") return error.message;
  onFailure(error instanceof PlatformError ? (error.cause ?? error) : error);
  return "an internal error; the server's log has the details";
}

function reply(type: string, data: unknown): Reply {
  return { text: JSON.stringify({ type, data }), isLast: false };
}
