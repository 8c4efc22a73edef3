import { isObject, type ToolDescriptor } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { CircuitBreaker } from "../errors/breaker.ts";
import { ToolError, UnrecoverableEnvironmentError, ValidationError } from "../errors/errors.ts";
import { explainCall, explainList, isInstanceFault } from "../errors/mcp-failure.ts";
import type { McpCallOptions, McpClient } from "../mcp/client.ts";
import { ToolResult } from "../mcp/tool-result.ts";
import type { Logger } from "./logger.ts";

export interface ToolCallerOptions {
  readonly envName: string;
  /** The instance's address, for error messages. */
  readonly url: string;
  readonly mcp: McpClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Lists and calls the tools of one instance. Its circuit breaker stops calls to an instance that keeps failing. */
export class ToolCaller {
  readonly #options: ToolCallerOptions;
  readonly #breaker: CircuitBreaker;

  constructor(options: ToolCallerOptions) {
    this.#options = options;
    this.#breaker = new CircuitBreaker(options.clock);
  }

  /** The tools with full names, `weather-demo@1.0.0/get_weather`. */
  async list(options: Pick<McpCallOptions, "timeoutMs" | "signal">): Promise<ToolDescriptor[]> {
    const { mcp, envName, url } = this.#options;
    try {
      const tools = await mcp.listTools(options);
      return tools.map((tool) => ({ ...tool, name: `${envName}/${tool.name}` }));
    } catch (error) {
      throw explainList(error, { envName, url });
    }
  }

  async call(toolName: string, args: Readonly<Record<string, unknown>>, options: McpCallOptions): Promise<ToolResult> {
    this.#enterBreaker();
    const { mcp, envName, url } = this.#options;
    const { timeoutMs, signal } = options;
    const listeners = { onProgress: this.#guard(options.onProgress), onLog: this.#guard(options.onLog) };
    try {
      const answer = await mcp.callTool(toolName, args, { timeoutMs, signal, ...listeners });
      this.#breaker.succeed();
      return new ToolResult(answer);
    } catch (error) {
      const explained = explainCall(error, { envName, url, toolName, timeoutMs });
      if (signal?.aborted || explained instanceof ValidationError) this.#breaker.cancel();
      else if (isInstanceFault(explained)) this.#breaker.fail();
      else this.#breaker.succeed();
      throw explained;
    }
  }

  close(): Promise<void> {
    return this.#options.mcp.close();
  }

  #enterBreaker(): void {
    const waitMs = this.#breaker.enter();
    if (waitMs === 0) return;
    const { envName } = this.#options;
    throw new UnrecoverableEnvironmentError(
      `the last ${this.#breaker.failures} calls to '${envName}' failed; the next call is allowed in ${Math.ceil(waitMs / 1_000)} s, or release this environment and open another`,
      { envName },
    );
  }

  /** An exception of a listener is logged: it must not cost the caller the result of the call. */
  #guard<T>(listener: ((value: T) => void) | undefined): ((value: T) => void) | undefined {
    if (listener === undefined) return undefined;
    return (value) => {
      try {
        listener(value);
      } catch (error) {
        this.#options.logger.error("a listener of a tool call threw", { env: this.#options.envName, error: String(error) });
      }
    };
  }
}

/** The tool's name without its environment. Throws if the name belongs to another environment. */
export function plainToolName(envName: string, name: string): string {
  const slash = name.indexOf("/");
  if (slash < 0) return name;
  if (name.slice(0, slash) === envName) return name.slice(slash + 1);
  throw new ToolError(`tool '${name}' does not belong to environment '${envName}'`, { code: "tool.not_found", toolName: name });
}

export function checkArguments(toolName: string, args: unknown): void {
  if (!isObject(args)) throw new ValidationError(`the arguments of tool '${toolName}' must be an object, not ${JSON.stringify(args)}`);
}
