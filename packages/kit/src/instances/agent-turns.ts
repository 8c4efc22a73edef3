import { PlatformError } from "@aenv/contract";
import type { TurnSource } from "../agent/conversations.ts";
import { isAgentTool } from "../agent/tools.ts";
import type { AgentPart, AgentTools } from "../definition/agent.ts";
import type { ToolContext } from "../definition/definition.ts";
import { type CallHooks, quietHooks } from "./call.ts";
import type { RunningCalls } from "./running-calls.ts";
import { type ToolCaller, toolTurn } from "./tool-turn.ts";

export interface TurnOptions {
  readonly agent: AgentPart | undefined;
  readonly tools: ToolCaller;
  readonly calls: RunningCalls;
  readonly context: (hooks: CallHooks) => ToolContext<unknown>;
  readonly logFailure: (what: string, error: unknown, controller: AbortController) => void;
}

/** What answers the messages of an episode: its agent, or else its tools. */
export function turnsOf({ agent, tools, calls, context, logFailure }: TurnOptions): TurnSource {
  const run: TurnSource["run"] = async (turn, controller) => void (await calls.run(turn, controller, undefined, "the agent's turn"));
  const onFailure: TurnSource["onFailure"] = (error, controller) => logFailure("the agent's turn", error, controller);
  if (agent === undefined)
    return { begin: () => undefined, turn: (message, _, controller) => toolTurn(tools, message, controller), run, onFailure };
  return {
    begin: (controller) => agent.begin(context(quietHooks(controller))),
    turn: (message, memory, controller) => {
      const hooks = quietHooks(controller);
      return agent.turn(message.parts, memory, { ...context(hooks), message, tools: toolsFor(tools, hooks) });
    },
    ...(agent.directAnswer !== undefined && { directAnswer: ({ messageId, parts }) => agent.directAnswer?.(parts, messageId) ?? null }),
    run,
    onFailure,
  };
}

/** The tools of the environment, without those that talk to the agent. */
function toolsFor(caller: ToolCaller, hooks: CallHooks): AgentTools {
  const { signal } = hooks.controller;
  return {
    list: () => [...caller.tools.values()].flatMap(({ descriptor }) => (isAgentTool(descriptor.name) ? [] : [descriptor])),
    call: async (name, input) => {
      // After its end, the instance may have another episode.
      signal.throwIfAborted();
      const tool = isAgentTool(name) ? undefined : caller.tools.get(name);
      if (tool === undefined) throw new PlatformError("tool.not_found", `the environment has no tool '${name}' for its agent`);
      return caller.callTool(tool, input, hooks);
    },
  };
}
