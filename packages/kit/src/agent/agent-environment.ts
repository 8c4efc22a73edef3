import type { AgentPart } from "../definition/agent.ts";
import type { EnvironmentDefinition, EnvironmentSource } from "../definition/definition.ts";
import { rememberLocation } from "../definition/source-location.ts";

/**
 * Defines an environment that is an agent. Its state is its conversations: it can be reset, stored and forked as any environment, and
 * may have tasks, rewards and tools, which its agent can call too.
 *
 * @example
 * export default agentEnvironment({
 *   description: "Repeats what it is told.",
 *   agent: {
 *     begin: () => ({ heard: 0 }),
 *     async *turn(input, memory) {
 *       memory.heard++;
 *       yield { kind: "answer", parts: input };
 *     },
 *   },
 * });
 */
export function agentEnvironment<
  State,
  Memory,
  const Inputs extends readonly unknown[],
  const RewardInputs extends readonly unknown[],
  const FunctionInputs extends readonly unknown[],
>(
  source: Omit<EnvironmentSource<State, Inputs, RewardInputs, FunctionInputs>, "agent"> & { readonly agent: AgentPart<Memory> },
): EnvironmentDefinition<State> {
  return rememberLocation(source as EnvironmentDefinition<State>, agentEnvironment);
}
