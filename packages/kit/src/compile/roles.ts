import { isObject, MAX_ROLES, PlatformError, type RoleDescriptions, roleName } from "@aenv/contract";
import * as z from "zod";
import type { EnvironmentDefinition, RoleDefinition, ToolDefinition } from "../definition/definition.ts";
import { unknownOption } from "../definition/options.ts";

/** The checked roles of an environment. */
export interface CompiledRoles {
  /** In the order in which they are declared. */
  readonly names: readonly string[];
  readonly definitions: Readonly<Record<string, RoleDefinition>>;
  readonly scoresOthers: boolean;
}

export const WAIT_TOOL = "wait_for_turn";
/** Proxies and clients give up on a request that takes longer. */
const LONGEST_WAIT_SECONDS = 60;
/** Node's timers fire at once for longer delays. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Options that mean nothing without roles. */
const ONLY_WITH_ROLES = ["turnOf", "resolve", "forfeit", "scoresOthers"] as const;

/** The tool by which the agent of a role waits for its turn. Every role has it; its play answers it. */
export const waitTool: ToolDefinition = {
  name: WAIT_TOOL,
  description:
    "Waits until it is your turn or the episode is over, but not longer than timeout_s seconds. Call it again if it is not your turn yet.",
  input: z.object({
    timeout_s: z.number().min(0).max(LONGEST_WAIT_SECONDS).default(30).describe("How long to wait at most, in seconds"),
  }),
  output: z.object({
    your_turn: z.boolean(),
    over: z.boolean().describe("The episode is over, or you have given up"),
    observation: z.unknown().describe("What you see now"),
  }),
  run: () => undefined,
};

/** Null without roles. */
export function compileRoles(definition: EnvironmentDefinition): CompiledRoles | null {
  const { roles, scoresOthers = false } = definition;
  if (roles === undefined) {
    const option = ONLY_WITH_ROLES.find((name) => definition[name] !== undefined);
    if (option !== undefined) throw invalid(`${option} needs roles; add 'roles' to the definition`);
    return null;
  }
  if (!isObject(roles)) throw invalid("roles must be an object: the name of each role, and its options");
  if (definition.agent !== undefined) throw invalid("an environment that is an agent has no roles: its callers are all of one kind");
  if (definition.mcp !== undefined) throw invalid("roles have tools only; 'mcp' offers resources and prompts to everybody");
  const names = Object.keys(roles);
  if (names.length === 0 || names.length > MAX_ROLES) throw invalid(`there are ${names.length} roles; there must be 1 to ${MAX_ROLES}`);
  for (const name of names) checkRole(name, roles[name]);
  return { names, definitions: roles, scoresOthers };
}

export function describeRoles({ names, definitions }: CompiledRoles): RoleDescriptions {
  return Object.fromEntries(names.map((name) => [name, { ...definitions[name] }]));
}

function checkRole(name: string, role: unknown): void {
  const parsed = roleName.safeParse(name);
  if (!parsed.success) throw invalid(`role '${name}': its name ${parsed.error.issues[0]?.message}`);
  if (!isObject(role)) throw invalid(`role '${name}' must be an object of options, which may be empty`);
  const problem = unknownOption("role", role);
  if (problem !== null) throw invalid(`role '${name}': ${problem}`);
  const { description, turnTimeoutMs, maxInvalidMoves } = role;
  if (description !== undefined && typeof description !== "string") throw invalid(`role '${name}': its description must be a text`);
  if (turnTimeoutMs !== undefined && !(typeof turnTimeoutMs === "number" && turnTimeoutMs > 0 && turnTimeoutMs <= MAX_TIMER_MS))
    throw invalid(`role '${name}': turnTimeoutMs must be a number of milliseconds from 1 to ${MAX_TIMER_MS}`);
  if (maxInvalidMoves !== undefined && !(Number.isSafeInteger(maxInvalidMoves) && (maxInvalidMoves as number) >= 0))
    throw invalid(`role '${name}': maxInvalidMoves must be a whole number that is not negative`);
}

function invalid(message: string): PlatformError {
  return new PlatformError("environment.invalid", message);
}
