import { nearestName } from "@aenv/contract";
import type {
  EnvironmentDefinition,
  FunctionDefinition,
  HealthEndpoint,
  RewardDefinition,
  RoleDefinition,
  ToolDefinition,
} from "./definition.ts";

/** The options of each part of a definition. An option of the types that is missing here fails the type check. */
const keys = {
  environment: {
    description: true,
    skills: true,
    agent: true,
    setup: true,
    setupTimeoutMs: true,
    observe: true,
    prompt: true,
    reply: true,
    status: true,
    stepReward: true,
    digest: true,
    oracle: true,
    observation: true,
    hear: true,
    tasks: true,
    tasksOf: true,
    inlineTask: true,
    roles: true,
    turnOf: true,
    resolve: true,
    forfeit: true,
    scoresOthers: true,
    tools: true,
    toolsOf: true,
    mcp: true,
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
    outOfTurn: true,
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
    sandbox: true,
    path: true,
    role: true,
    score: true,
  } satisfies Record<keyof RewardDefinition, true>,
  role: { description: true, turnTimeoutMs: true, maxInvalidMoves: true } satisfies Record<keyof RoleDefinition, true>,
  healthAt: { name: true, description: true, endpoint: true, method: true } satisfies Record<keyof HealthEndpoint, true>,
} as const;

export type Part = keyof typeof keys;

/**
 * Describes the first unknown option of a part; null if all are known. A mistyped option would otherwise be ignored silently.
 * Instances of classes may have other fields, so only plain objects are checked.
 */
export function unknownOption(part: Part, definition: object): string | null {
  const prototype: unknown = Object.getPrototypeOf(definition);
  if (prototype !== Object.prototype && prototype !== null) return null;
  for (const key of Object.keys(definition)) {
    if (Object.hasOwn(keys[part], key)) continue;
    const known = Object.keys(keys[part]);
    const meant = nearestName(key, known);
    return `unknown option '${key}'; ${meant === null ? `the options are ${known.join(", ")}` : `did you mean '${meant}'?`}`;
  }
  return null;
}
