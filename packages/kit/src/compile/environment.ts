import { createHash } from "node:crypto";
import {
  ARTIFACTS_FUNCTION,
  type Catalogue,
  type CatalogueEntry,
  type EpisodeAbilities,
  isObject,
  isPlatformError,
  isReservedEndpoint,
  PlatformError,
  type ToolDescriptor,
} from "@aenv/contract";
import { agentTools } from "../agent/tools.ts";
import type { EnvironmentDefinition, FunctionDefinition, RewardDefinition, Schema, ToolDefinition } from "../definition/definition.ts";
import { withLocation } from "../definition/error-location.ts";
import { type Part, unknownOption } from "../definition/options.ts";
import { keepsStateInModules } from "../definition/registry.ts";
import { sourceOf } from "../definition/rubric-source.ts";
import { locationOf } from "../definition/source-location.ts";
import { type CompiledRoles, compileRoles, describeRoles, WAIT_TOOL, waitTool } from "./roles.ts";
import { anyObject, type CompiledSchema, compileSchema } from "./schema.ts";
import { type OutputShape, outputShape } from "./tool-result.ts";

export interface CompiledTool {
  readonly definition: ToolDefinition;
  readonly input: CompiledSchema;
  readonly output: OutputShape | null;
  readonly descriptor: ToolDescriptor;
  /** Clients repeat some of its arguments in headers (2026 revision of MCP). */
  readonly mirrorsArguments: boolean;
}

/** Tools by name, in the order in which they are listed. */
export type Toolset = ReadonlyMap<string, CompiledTool>;

/** A function or a single reward at its own path. */
export interface CompiledEndpoint {
  readonly kind: "function" | "reward";
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly input: CompiledSchema;
  readonly definition: FunctionDefinition | RewardDefinition;
}

export interface CompiledReward {
  readonly definition: RewardDefinition;
  readonly input: CompiledSchema;
  readonly weight: number;
}

/** A checked definition with compiled schemas: what all instances of an environment share. */
export interface CompiledEnvironment {
  readonly name: string;
  readonly version: string;
  readonly definition: EnvironmentDefinition;
  readonly tools: Toolset;
  /** Null if an instance has one agent. */
  readonly roles: CompiledRoles | null;
  /** The tool that each role has besides its own; null without roles. */
  readonly waitTool: CompiledTool | null;
  readonly rewards: readonly CompiledReward[];
  /** Endpoints by `METHOD /path`. */
  readonly endpoints: ReadonlyMap<string, CompiledEndpoint>;
  /** The routes of the health check, as `METHOD /path`. */
  readonly healthKeys: ReadonlySet<string>;
  readonly catalogue: Catalogue;
  readonly abilities: EpisodeAbilities;
  readonly keepsStateInModules: boolean;
  /** Whether a reward wants the path of the episode. */
  readonly recordsPath: boolean;
}

interface Identity {
  readonly name: string;
  readonly version: string;
}

/** As in MCP, but without a slash: clients put `<environment>/` before a tool's name. */
const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** Node's timers fire at once for longer delays. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Checks a definition and compiles its schemas once, so that calls need no further checks of the definition. */
export async function compileEnvironment(definition: EnvironmentDefinition, identity: Identity): Promise<CompiledEnvironment> {
  try {
    return await compile(definition, identity);
  } catch (error) {
    // A part that is written inline has no location of its own, so the environment's is used.
    throw isPlatformError(error) ? withLocation(error, locationOf(Object(definition))) : error;
  }
}

async function compile(definition: EnvironmentDefinition, identity: Identity): Promise<CompiledEnvironment> {
  if (typeof definition !== "object" || definition === null) {
    throw new PlatformError("environment.invalid", `an environment is an object made by defineEnvironment, not ${typeof definition}`);
  }
  assertKnownOptions("environment", definition, "the environment");
  if (definition.healthAt !== undefined) assertKnownOptions("healthAt", definition.healthAt, "healthAt of the environment");
  checkSetupTimeout(definition);
  checkAgent(definition);
  const roles = compileRoles(definition);
  const tools = await compileTools(withAgentTools(definition, definition.tools ?? []));
  checkToolsOfRoles(definition, roles, tools);
  const rewards = await compileRewards(definition.rewards ?? []);
  checkRewardRoles(rewards, roles);
  const functions = await compileFunctions(definition.functions ?? []);
  const endpoints = collectEndpoints(functions, rewards);
  return {
    ...identity,
    definition,
    tools,
    roles,
    waitTool: roles === null ? null : ((await compileTools([waitTool])).get(WAIT_TOOL) ?? null),
    rewards,
    endpoints,
    healthKeys: healthKeysOf(definition, endpoints),
    catalogue: catalogueOf(functions, rewards, definition),
    abilities: { ...abilitiesOf(definition, rewards, functions), ...(roles !== null && { roles: describeRoles(roles) }) },
    keepsStateInModules: keepsStateInModules(definition),
    recordsPath: recordsPath(rewards),
  };
}

function assertKnownOptions(part: Part, definition: object, what: string): void {
  const problem = unknownOption(part, definition);
  if (problem !== null) throw invalid(definition, `${what}: ${problem}`);
}

function checkSetupTimeout(definition: EnvironmentDefinition): void {
  const { setupTimeoutMs } = definition;
  if (setupTimeoutMs === undefined || setupTimeoutMs === Number.POSITIVE_INFINITY) return;
  if (typeof setupTimeoutMs === "number" && setupTimeoutMs > 0 && setupTimeoutMs <= MAX_TIMER_MS) return;
  const allowed = `a number of milliseconds from 1 to ${MAX_TIMER_MS}, or Infinity for no limit`;
  throw invalid(definition, `setupTimeoutMs is ${String(setupTimeoutMs)}; it must be ${allowed}`);
}

/** The tools of an environment, and those by which others talk to its agent. */
export function withAgentTools({ agent }: EnvironmentDefinition, tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  return agent === undefined ? tools : [...tools, ...agentTools];
}

function checkAgent(definition: EnvironmentDefinition): void {
  const { agent, skills = [] } = definition;
  if (agent !== undefined && (!isObject(agent) || typeof agent.begin !== "function" || typeof agent.turn !== "function"))
    throw invalid(definition, "its 'agent' must be an object with the functions 'begin' and 'turn', as chatAgent returns it");
  if (!Array.isArray(skills) || skills.some((skill) => !isObject(skill) || typeof skill.id !== "string" || skill.id === ""))
    throw invalid(definition, "its 'skills' must be a list of objects with 'id' and 'description'");
}

/** Checks a list of tools and compiles their schemas. */
export async function compileTools(definitions: readonly ToolDefinition[]): Promise<Toolset> {
  const tools = new Map<string, CompiledTool>();
  for (const definition of definitions) {
    const what = checkNamed("tool", definition, definition.run, tools);
    if (definition.hidden === true) continue;
    const input = await compileInput(definition.input, what);
    if (input.input.type !== undefined && input.input.type !== "object") {
      throw invalid(definition, `${what}: its input must be of type object, not ${JSON.stringify(input.input.type)}`);
    }
    const output = definition.output === undefined ? null : outputShape(await compileSchema(definition.output, `${what}: its output`));
    const mirrorsArguments = JSON.stringify(input.input).includes('"x-mcp-header"');
    tools.set(definition.name, { definition, input, output, descriptor: describeTool(definition, input, output), mirrorsArguments });
  }
  return tools;
}

/** Tools that were compiled for an environment with roles must leave the name of the platform's tool free. */
export function checkToolsOfRoles({ resolve }: EnvironmentDefinition, roles: CompiledRoles | null, tools: Toolset): void {
  if (roles === null) return;
  const taken = tools.get(WAIT_TOOL);
  if (taken !== undefined) throw invalid(taken.definition, `tool '${WAIT_TOOL}': every role has a tool of this name; choose another`);
  if (resolve === undefined) return;
  for (const { definition, output } of tools.values())
    if (output !== null && definition.outOfTurn !== true)
      throw invalid(
        definition,
        `tool '${definition.name}': with 'resolve' it returns an action, which waits for others; remove its output`,
      );
}

function checkRewardRoles(rewards: readonly CompiledReward[], roles: CompiledRoles | null): void {
  for (const { definition } of rewards) {
    const { role, name } = definition;
    if (role === undefined) continue;
    if (roles === null) throw invalid(definition, `reward '${name}': it is for a role, but the environment has no roles`);
    if (role !== null && !roles.names.includes(role))
      throw invalid(definition, `reward '${name}': there is no role '${role}'; the roles are ${roles.names.join(", ")}`);
  }
}

function describeTool(definition: ToolDefinition, input: CompiledSchema, output: OutputShape | null): ToolDescriptor {
  return {
    name: definition.name,
    ...(definition.title !== undefined && { title: definition.title }),
    ...(definition.description !== undefined && { description: definition.description }),
    inputSchema: { type: "object", ...input.input },
    ...(definition.annotations !== undefined && { annotations: definition.annotations }),
    ...(output !== null && { outputSchema: output.advertised }),
  };
}

async function compileRewards(definitions: readonly RewardDefinition[]): Promise<CompiledReward[]> {
  const rewards: CompiledReward[] = [];
  const seen = new Map<string, unknown>();
  for (const definition of definitions) {
    const what = checkNamed("reward", definition, definition.score, seen);
    seen.set(definition.name, definition);
    const weight = definition.weight ?? 1;
    if (!Number.isFinite(weight)) throw invalid(definition, `${what}: its weight is ${weight}; it must be a finite number`);
    rewards.push({ definition, input: await compileInput(definition.input, what), weight });
  }
  return rewards;
}

async function compileFunctions(definitions: readonly FunctionDefinition[]): Promise<CompiledEndpoint[]> {
  const functions = new Map<string, CompiledEndpoint>();
  for (const definition of definitions) {
    const what = checkNamed("function", definition, definition.run, functions);
    functions.set(definition.name, {
      kind: "function",
      name: definition.name,
      method: definition.method ?? "POST",
      path: definition.endpoint ?? `/functions/${definition.name}`,
      input: await compileInput(definition.input, what),
      definition,
    });
  }
  return [...functions.values()];
}

function collectEndpoints(functions: readonly CompiledEndpoint[], rewards: readonly CompiledReward[]): Map<string, CompiledEndpoint> {
  const endpoints = new Map<string, CompiledEndpoint>();
  const add = (endpoint: CompiledEndpoint) => {
    const what = `${endpoint.kind} '${endpoint.name}'`;
    assertPathFree(endpoint.method, endpoint.path, endpoint.definition, what);
    const other = endpoints.get(keyOf(endpoint));
    if (other !== undefined)
      throw invalid(endpoint.definition, `${what}: ${keyOf(endpoint)} is already used by ${other.kind} '${other.name}'`);
    endpoints.set(keyOf(endpoint), endpoint);
  };
  for (const endpoint of functions) add(endpoint);
  for (const { definition, input } of rewards) {
    if (definition.endpoint === undefined || definition.endpoint === "/task/reward") continue;
    add({ kind: "reward", name: definition.name, method: definition.method ?? "POST", path: definition.endpoint, input, definition });
  }
  return endpoints;
}

/** `/health` always, because the platform polls it, and the author's own path. */
function healthKeysOf(definition: EnvironmentDefinition, endpoints: ReadonlyMap<string, CompiledEndpoint>): ReadonlySet<string> {
  const { endpoint = "/health", method = "GET" } = definition.healthAt ?? {};
  const key = `${method} ${endpoint}`;
  if (key === "GET /health") return new Set([key]);
  assertPathFree(method, endpoint, definition, "the health check");
  const other = endpoints.get(key);
  if (other !== undefined) throw invalid(definition, `the health check: ${key} is already used by ${other.kind} '${other.name}'`);
  return new Set(["GET /health", key]);
}

function assertPathFree(method: string, path: string, definition: object, what: string): void {
  if (!/^\/[^?#\s]*$/.test(path)) throw invalid(definition, `${what}: its endpoint '${path}' must be a path that begins with '/'`);
  if (isReservedEndpoint(method, path))
    throw invalid(definition, `${what}: its endpoint '${path}' is reserved for the platform; choose another`);
}

function keyOf(endpoint: CompiledEndpoint): string {
  return `${endpoint.method} ${endpoint.path}`;
}

function catalogueOf(
  functions: readonly CompiledEndpoint[],
  rewards: readonly CompiledReward[],
  definition: EnvironmentDefinition,
): Catalogue {
  const reward = rewards.map(({ definition: one, input }) =>
    describeEntry(one.name, one.endpoint ?? "/task/reward", one.method ?? "POST", one.description, input),
  );
  const described = functions.map((one) => describeEntry(one.name, one.path, one.method, one.definition.description, one.input));
  const health = [describeHealth(definition)];
  return { total: described.length + reward.length + 1, functions: described, reward, health };
}

function abilitiesOf(
  { agent, prompt, reply, status, stepReward, digest, oracle, observation, hear }: EnvironmentDefinition,
  rewards: readonly CompiledReward[],
  functions: readonly CompiledEndpoint[],
): EpisodeAbilities {
  return {
    prompt: prompt !== undefined,
    // An agent answers by itself. Without a reply, the last words of the agent that plays are still part of the path.
    reply: reply !== undefined || agent !== undefined || recordsPath(rewards),
    status: status !== undefined,
    stepRewards: stepReward !== undefined,
    digest: digest !== undefined,
    oracle: oracle !== undefined,
    observation: observation !== undefined,
    hear: hear !== undefined,
    ...(rewards.length > 0 && { rewardDigest: rewardDigestOf(rewards) }),
    ...(functions.some(({ name }) => name === ARTIFACTS_FUNCTION) && { artifacts: true }),
  };
}

function recordsPath(rewards: readonly CompiledReward[]): boolean {
  return rewards.some(({ definition }) => definition.path === true);
}

/** Tells a trainer whether the rewards of two versions are the same code. What the functions call is not part of it. */
function rewardDigestOf(rewards: readonly CompiledReward[]): string {
  const sources = rewards.map(({ definition: { name, score }, weight }) => [name, weight, sourceOf(score)]);
  return `sha256:${createHash("sha256").update(JSON.stringify(sources)).digest("hex")}`;
}

function describeHealth({ health, healthAt = {} }: EnvironmentDefinition): CatalogueEntry {
  const { name, description, endpoint = "/health", method = "GET" } = healthAt;
  if (health === undefined) return describeEntry("default_health", "/health", "GET", "The default health check.", anyObject);
  return describeEntry(name ?? "health", endpoint, method, description, anyObject);
}

function describeEntry(
  name: string,
  endpoint: string,
  method: string,
  description: string | undefined,
  input: CompiledSchema,
): CatalogueEntry {
  const parameters: CatalogueEntry["parameters"] = {};
  const properties = isObject(input.input.properties) ? input.input.properties : {};
  for (const [key, value] of Object.entries(properties)) {
    const schema = isObject(value) ? value : {};
    parameters[key] = {
      type: typeof schema.type === "string" ? schema.type : "any",
      default: schema.default === undefined ? null : typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default),
    };
  }
  return { name, endpoint, method, description: description ?? "", parameters, is_async: true };
}

async function compileInput(input: unknown, what: string): Promise<CompiledSchema> {
  return input === undefined ? anyObject : compileSchema(input as Schema, `${what}: its input`);
}

/** Checks name, options and code of a part, and returns its description for error messages. */
function checkNamed(
  kind: "tool" | "reward" | "function",
  definition: { readonly name: string },
  run: unknown,
  taken: ReadonlyMap<string, unknown>,
): string {
  if (!isObject(definition)) throw new PlatformError("environment.invalid", `a ${kind} must be an object, not ${typeof definition}`);
  const what = `${kind} '${String(definition.name)}'`;
  if (typeof definition.name !== "string" || !NAME.test(definition.name)) {
    throw invalid(definition, `${what}: a name has 1 to 128 letters, digits, '_', '-' or '.'`);
  }
  // The MCP SDK would take it for a registered tool.
  if (definition.name in Object.prototype)
    throw invalid(definition, `${what}: the name is reserved, because every JavaScript object has a property of that name; choose another`);
  if (taken.has(definition.name)) throw invalid(definition, `${what} is defined twice; names must be unique`);
  assertKnownOptions(kind, definition, what);
  if (typeof run !== "function") throw invalid(definition, `${what} has no ${kind === "reward" ? "'score'" : "'run'"} function`);
  return what;
}

function invalid(definition: object, message: string): PlatformError {
  const location = locationOf(definition);
  return new PlatformError("environment.invalid", message, location === null ? {} : { details: { place: location } });
}
