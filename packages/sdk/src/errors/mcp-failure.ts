import { isObject } from "@aenv/contract";
import { AnswerLimitError, EnvironmentError, NetworkError, ToolError, ToolServerError, ToolTimeoutError } from "./errors.ts";
import { type Failure, readFailure, readInfo } from "./failure.ts";
import { StatusError, TransportError } from "./http-errors.ts";
import { networkError } from "./network-failure.ts";
import { ProtocolError, RpcError } from "./rpc-errors.ts";
import { describeUnexpected } from "./unexpected-answer.ts";

/** The call that failed. */
export interface FailedCall {
  readonly envName: string;
  readonly url: string;
  readonly toolName: string;
  readonly timeoutMs: number;
}

const MAY_HAVE_RUN = "the tool may have run, so the call is not sent again";
const INVALID_PARAMS = -32602;

/** Turns a failed tool call into an error of the SDK. Other errors, such as an abort, are returned unchanged. */
export function explainCall(error: unknown, call: FailedCall): unknown {
  const { toolName, timeoutMs, url } = call;
  const failed = `tool '${toolName}' of '${call.envName}' gave no answer`;
  if (error instanceof TransportError) {
    if (!error.wasSent) return new NetworkError(`${failed}: ${error.message}; the call was never sent`, { cause: error });
    if (!error.isTimeout) return new ToolError(`${failed}: ${error.message}; ${MAY_HAVE_RUN}`, { toolName, cause: error });
    return new ToolTimeoutError(`${failed} within ${timeoutMs} ms; ${MAY_HAVE_RUN}`, { toolName, timeoutMs, cause: error });
  }
  if (error instanceof AnswerLimitError)
    return new ToolError(`${failed}: ${error.message}; ${MAY_HAVE_RUN}`, { code: error.code, toolName, cause: error });
  if (error instanceof StatusError) return explainStatus(error, call, failed);
  if (error instanceof RpcError) return explainRpc(error, call, failed);
  if (error instanceof ProtocolError) {
    if (!error.isEmpty)
      return new ToolServerError(`${failed}: ${error.message}; ${MAY_HAVE_RUN}`, { toolName, statusCode: 200, cause: error });
    return emptyAnswer(failed, url, call.envName, error);
  }
  return error;
}

/** The same for listing the tools, which is idempotent. */
export function explainList(error: unknown, { envName, url }: { readonly envName: string; readonly url: string }): unknown {
  const failed = `could not list the tools of '${envName}'`;
  if (error instanceof TransportError) return networkError(failed, error, "idempotent");
  if (error instanceof StatusError) {
    const failure = readFailure(error, "instance.not_found");
    const isOfProgram = !failure.isNamed && failure.code === "internal";
    return environmentError(failed, envName, isOfProgram ? { ...failure, code: "tool.list_failed" } : failure, error);
  }
  if (error instanceof ProtocolError && error.isEmpty) return emptyAnswer(failed, url, envName, error);
  if (error instanceof RpcError || error instanceof ProtocolError) {
    return new EnvironmentError(`${failed}: ${error.message}`, { code: "tool.list_failed", envName, cause: error });
  }
  return error;
}

/** Whether the failure counts for the circuit breaker: a lost connection, a timeout, or an error of the instance. */
export function isInstanceFault(error: unknown): boolean {
  if (error instanceof ToolServerError) return error.statusCode >= 500;
  if (error instanceof NetworkError || error instanceof ToolTimeoutError) return true;
  if (error instanceof EnvironmentError) return error.code === "instance.not_found" || error.code === "network.failed";
  return error instanceof ToolError && error.code === "tool.failed";
}

function explainStatus(error: StatusError, call: FailedCall, failed: string): Error {
  const failure = readFailure(error, "instance.not_found");
  const { message, isNamed, ...rest } = failure;
  const { toolName } = call;
  if (error.status >= 500) {
    const options = { ...rest, ...(!isNamed && { code: "tool.failed" as const, retryable: false }) };
    return new ToolServerError(`${failed}: HTTP ${error.status}: ${message}; ${MAY_HAVE_RUN}`, {
      ...options,
      toolName,
      statusCode: error.status,
      cause: error,
    });
  }
  if (/^(?:instance|environment|access|server)\./.test(failure.code)) return environmentError(failed, call.envName, failure, error);
  return new ToolError(`${failed}: HTTP ${error.status}: ${message}`, { ...rest, toolName, cause: error });
}

function explainRpc(error: RpcError, { toolName, envName }: FailedCall, failed: string): Error {
  const info = isObject(error.data) ? readInfo(error.data) : {};
  const isUnknownTool = error.code === INVALID_PARAMS && /unknown tool|not found/i.test(error.message);
  if (isUnknownTool) {
    return new ToolError(`environment '${envName}' has no tool '${toolName}': ${error.message}`, {
      code: "tool.not_found",
      ...info,
      toolName,
      cause: error,
    });
  }
  const isRefused = error.code <= -32600 && error.code >= INVALID_PARAMS;
  return new ToolServerError(`${failed}: ${error.message} (${error.code})`, {
    code: isRefused ? "request.invalid" : "tool.failed",
    ...info,
    toolName,
    statusCode: 200,
    cause: error,
  });
}

function environmentError(failed: string, envName: string, failure: Failure, cause: StatusError): EnvironmentError {
  const { message, isNamed: _, ...rest } = failure;
  return new EnvironmentError(`${failed}: HTTP ${cause.status}: ${message}`, { ...rest, envName, cause });
}

function emptyAnswer(failed: string, url: string, envName: string, cause: ProtocolError): EnvironmentError {
  const options = { code: "network.failed", retryable: false, envName, cause } as const;
  return new EnvironmentError(`${failed}: ${describeUnexpected(url, undefined)}`, options);
}
