import { nearestName } from "@aenv/contract";
import type { EnvironmentDefinition, FunctionDefinition, HealthEndpoint, RewardDefinition, ToolDefinition } from "./definition.ts";

/** The options that each part of a definition has; a new one that is missing here fails the type check. */
const keys = {
  environment: {
    setup: true,
    setupTimeoutMs: true,
    observe: true,
    tasks: true,
    tasksOf: true,
    tools: true,
    toolsOf: true,
    rewards: true,
    functions: true,
    health: true,
    healthAt: true,
    snapshot: true,
    restore: true,
    teardown: true,
  } satisfies Record<keyof EnvironmentDefinition, true>,
  tool: {
    name: true,
    title: true,
    description: true,
    input: true,
    output: true,
    hidden: true,
    annotations: true,
    timeoutMs: true,
    run: true,
  } satisfies Record<keyof ToolDefinition, true>,
  function: {
    name: true,
    description: true,
    input: true,
    endpoint: true,
    method: true,
    timeoutMs: true,
    run: true,
  } satisfies Record<keyof FunctionDefinition, true>,
  reward: {
    name: true,
    description: true,
    input: true,
    weight: true,
    endpoint: true,
    method: true,
    timeoutMs: true,
    score: true,
  } satisfies Record<keyof RewardDefinition, true>,
  healthAt: { name: true, description: true, endpoint: true, method: true } satisfies Record<keyof HealthEndpoint, true>,
} as const;

export type Part = keyof typeof keys;

/**
 * What is wrong with the names of a part's options; null if nothing is. A mistyped option would otherwise do nothing in silence.
 * Instances of classes may have fields of their own, so only plain objects are looked at.
 */
export function unknownOption(part: Part, definition: object): string | null {
  const prototype: unknown = Object.getPrototypeOf(definition);
  if (prototype !== Object.prototype && prototype !== null) return null;
  for (const key of Object.keys(definition)) {
    if (Object.hasOwn(keys[part], key)) continue;
    const known = Object.keys(keys[part]);
    const meant = nearestName(key, known);
    return `'${key}' is no option of it; ${meant === null ? `its options are ${known.join(", ")}` : `did you mean '${meant}'?`}`;
  }
  return null;
}
