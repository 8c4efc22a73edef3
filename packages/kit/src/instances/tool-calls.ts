import { type CallToolResult, messageOf, STATUS_META } from "@aenv/contract";
import type { CompiledEnvironment, CompiledTool } from "../compile/environment.ts";
import { type Checked, check } from "../compile/schema.ts";
import { toolFailure, toToolResult } from "../compile/tool-result.ts";
import type { StateContext, ToolContext } from "../definition/definition.ts";
import type { EpisodeModels } from "../models/episode-models.ts";
import { isPlatformFault } from "../sandboxes/faults.ts";
import { type CallHooks, isPromise } from "./call.ts";
import { statusFrom } from "./episode-parts.ts";
import type { EpisodePath } from "./episode-path.ts";
import type { RunningCalls } from "./running-calls.ts";

export interface ToolCallsOptions {
  readonly environment: CompiledEnvironment;
  readonly calls: RunningCalls;
  readonly path: () => EpisodePath | null;
  readonly models: () => EpisodeModels;
  /** Whether tools return observations instead of their whole results. */
  readonly isObserved: () => boolean;
  readonly state: (role: string | null) => StateContext<unknown>;
  readonly context: (hooks: CallHooks, input: unknown) => ToolContext<unknown>;
  readonly logFailure: (what: string, error: unknown, controller: AbortController) => void;
}

/** Makes the result of what a tool returned. */
type Finish = (value: unknown) => CallToolResult;
type Result = CallToolResult | Promise<CallToolResult>;

/** The calls of an instance's tools. A call that needs no waiting is answered without a promise. */
export class ToolCalls {
  readonly #options: ToolCallsOptions;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  /** By default, `finish` makes the result that the agent sees. */
  call(tool: CompiledTool, args: unknown, hooks: CallHooks, finish?: Finish): Result {
    try {
      const checked = check(tool.input, args ?? {});
      if (!(checked instanceof Promise)) return this.#callIfValid(tool, checked, hooks, finish);
      return checked
        .then((done) => this.#callIfValid(tool, done, hooks, finish))
        .catch((error: unknown) => this.#failed(tool, error, hooks));
    } catch (error) {
      return this.#failed(tool, error, hooks);
    }
  }

  /** Like `call`, for arguments that the tool's schema has already accepted. */
  callChecked(tool: CompiledTool, input: unknown, hooks: CallHooks, finish?: Finish): Result {
    const path = this.#options.path();
    if (path === null) return this.#run(tool, input, hooks, finish);
    const text = hooks.inputText?.() ?? JSON.stringify(input);
    return path.call(tool.definition.name, text, () => this.#run(tool, input, hooks, finish), hooks.role ?? null);
  }

  #callIfValid(tool: CompiledTool, checked: Checked, hooks: CallHooks, finish?: Finish): Result {
    if (checked.ok) return this.callChecked(tool, checked.value, hooks, finish);
    return toolFailure(`Input validation error: Invalid arguments for tool ${tool.definition.name}: ${checked.problem}`);
  }

  #run(tool: CompiledTool, input: unknown, hooks: CallHooks, finish?: Finish): Result {
    const { calls, models, context } = this.#options;
    const { name, timeoutMs } = tool.definition;
    const toResult = finish ?? ((done: unknown) => toToolResult(this.#shown(done, hooks.role ?? null), tool.output, name));
    try {
      const run = () => models().inStep(() => tool.definition.run(input as never, context(hooks, input)));
      const value = calls.run(run, hooks.controller, timeoutMs, `tool '${name}'`);
      const result = isPromise(value) ? value.then(toResult) : toResult(value);
      if (!isPromise(result)) return this.#withStatus(result, hooks);
      return result.catch((error: unknown) => this.#failed(tool, error, hooks)).then((done) => this.#withStatus(done, hooks));
    } catch (error) {
      return this.#withStatus(this.#failed(tool, error, hooks), hooks);
    }
  }

  /** What the agent sees of a tool's result. */
  #shown(result: unknown, role: string | null): unknown {
    const { environment, isObserved, state } = this.#options;
    const { observation } = environment.definition;
    return isObserved() && observation !== undefined ? observation(result, state(role)) : result;
  }

  /** The agent gets the message; the stack goes to the log. */
  #failed({ definition }: CompiledTool, error: unknown, { controller }: CallHooks): CallToolResult {
    this.#options.logFailure(`tool '${definition.name}'`, error, controller);
    if (isPlatformFault(error)) throw error;
    return toolFailure(messageOf(error));
  }

  /** Adds to a tool's result whether the episode is over, where the environment says so. */
  #withStatus(result: CallToolResult, { controller }: CallHooks): Result {
    const { environment, calls, state, logFailure } = this.#options;
    const { status } = environment.definition;
    // With roles, the status also says whose turn it is after the whole call.
    if (status === undefined || environment.roles !== null) return result;
    const add = (value: unknown): CallToolResult => ({ ...result, _meta: { [STATUS_META]: statusFrom(value) } });
    // The tool has run, so its result counts whatever becomes of the status, which can be asked for again.
    const fail = (error: unknown) => {
      logFailure("'status'", error, controller);
      return result;
    };
    try {
      const value = calls.run(() => status(state(null)), controller, undefined, "'status'");
      return isPromise(value) ? value.then(add).catch(fail) : add(value);
    } catch (error) {
      return fail(error);
    }
  }
}
