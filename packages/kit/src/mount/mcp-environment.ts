import { isPlatformError, PlatformError, TimedSignal, type ToolDescriptor } from "@aenv/contract";
import type {
  CallContext,
  EnvironmentDefinition,
  HealthReport,
  RewardDefinition,
  SetupContext,
  ToolDefinition,
} from "../definition/definition.ts";
import { rememberLocation } from "../definition/source-location.ts";
import { expandVariables } from "../outgoing/variables.ts";
import { openChildPlace, rootUrlOf } from "./child-place.ts";
import { httpConnector, type McpState, Mounted, type ServerConnector } from "./mounted.ts";
import type { ProgramOptions, ServerPlace } from "./program.ts";
import { findSandboxPlace, openSandboxPlace } from "./sandbox-place.ts";
import { StdioTransport } from "./stdio.ts";
import { type PinnedTools, pinTools } from "./tool-list.ts";

/** What an environment of an MCP server may define beside the server's tools: everything but what the server decides. */
type OwnParts = Pick<
  EnvironmentDefinition<McpState>,
  | "setupTimeoutMs"
  | "observe"
  | "prompt"
  | "reply"
  | "hear"
  | "status"
  | "stepReward"
  | "digest"
  | "oracle"
  | "observation"
  | "tasks"
  | "tasksOf"
  | "inlineTask"
  | "functions"
>;

export interface McpOptions extends OwnParts {
  /** The content of `tools.json`. The agent gets these tools, whatever the server offers later; without it, those of the running server. */
  readonly pinned?: PinnedTools;
  /** Refuses an episode whose server has other tools than the pinned ones. By default only the health report says so. */
  readonly strict?: boolean;
  /** Tools of the environment itself, beside those of the server. */
  readonly tools?: readonly ToolDefinition<McpState>[];
  readonly rewards?: readonly RewardDefinition<McpState>[];
  /** Called when the server of a new episode runs: for example, calls its tools to make the task's first state. */
  prepare?(context: SetupContext & { readonly state: McpState }): void | Promise<void>;
  /** Timeout for the start of the server, one minute by default. */
  readonly startTimeoutMs?: number;
  /** Timeout for each call of the agent, one minute by default. A call that takes longer is a failure that the agent sees. */
  readonly callTimeoutMs?: number;
}

/** A server that is a program and speaks over its input and output. */
export interface McpCommandOptions extends McpOptions {
  /** The program and its arguments. It runs in a working folder of its own: what `files` names is one level up. */
  readonly command: readonly string[];
  /** Variables of the server. `${NAME}` in a value is that variable of the instance, such as a secret. */
  readonly env?: Readonly<Record<string, string>>;
  /** Folders or files of the project, listed in `buildConfig.data`, that lie beside the working folder. `vendor` by default. */
  readonly files?: readonly string[];
  /** A folder of the project with the files that the working folder has at first. */
  readonly workspace?: string;
  /** The image of its sandbox, if `deployConfig.taskSandboxes` allows it; the platform's own files, with Node, by default. */
  readonly image?: string;
  /**
   * What the end of the server means. Its state is gone, so by default the episode is lost: it gets no score. `restart` is for servers
   * without state: the next call starts the server again, and a fork starts one of its own.
   */
  readonly onExit?: "lost" | "restart";
}

/** A server that is reached by Streamable HTTP. Sandboxes have no network unless `deployConfig.egress` lists its host. */
export interface McpUrlOptions extends McpOptions {
  readonly url: string;
  /** Headers of each request. `${NAME}` in a value is that variable of the instance, such as a secret. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Private and loopback hosts that may be called, such as `10.0.0.5` or `127.0.0.1:8080`. None by default. */
  readonly allowPrivate?: readonly string[];
}

const TIMEOUT_MS = 60_000;
const SERVER = "the MCP server";

/**
 * An MCP server as an environment: its tools, with instances, traces and the rewards that you add.
 *
 * @example
 * export default mcpEnvironment({
 *   command: ["node", "../vendor/server.mjs"],
 *   pinned: tools,
 *   rewards: [{ name: "noted", score: async ({ state }) => (await state.files.readText("notes.txt")).includes("milk") }],
 * });
 */
export function mcpEnvironment(options: McpCommandOptions | McpUrlOptions): EnvironmentDefinition<McpState> {
  const { pinned, strict, tools: own = [], rewards, prepare, startTimeoutMs, callTimeoutMs = TIMEOUT_MS } = options;
  const toTools = (list: readonly ToolDescriptor[]) => [...list.map((tool) => forwarded(tool, callTimeoutMs)), ...own];
  const pinnedTools = pinned === undefined ? null : toTools(pinned.tools);
  const restarts = "command" in options && options.onExit === "restart";
  const open = async (context: SetupContext, isRestored: boolean, history?: string) => {
    const connector = await connectorFor(options, context, isRestored);
    const settings = { connector, pinned, isStrict: strict === true, restarts, startTimeoutMs: startTimeoutMs ?? TIMEOUT_MS };
    return Mounted.open(settings, context.signal, history);
  };
  const definition: EnvironmentDefinition<McpState> = {
    ...ownParts(options),
    setup: async (context) => {
      const state = await open(context, false);
      try {
        await prepare?.({ ...context, state });
        return state;
      } catch (error) {
        await state.close();
        throw error;
      }
    },
    teardown: (state) => mounted(state).close(),
    tools: pinnedTools ?? own,
    ...(pinnedTools === null && { toolsOf: (state) => toTools(mounted(state).tools) }),
    ...(rewards !== undefined && { rewards: rewards.map(onlyAlive) }),
    health: ({ state }) => healthOf(mounted(state)),
    digest: options.digest ?? ((state) => mounted(state).history),
    snapshot: (state) => {
      mounted(state).assertAlive();
      if (mounted(state).canFork || restarts) return { history: mounted(state).history };
      throw new PlatformError(
        "snapshot.unsupported",
        "the state of an MCP server is in its process, so it has no snapshot; fork it on a server with the engine oci, or set onExit to 'restart' if it has no state",
      );
    },
    restore: (snapshot, context) => open(context, true, (snapshot as { history: string }).history),
    mcp: (state) => {
      const { capabilities } = mounted(state);
      return {
        capabilities,
        request: async (method, params, signal) => {
          using limit = new TimedSignal(callTimeoutMs, signal);
          return mounted(state).request(method, params, { signal: limit.signal });
        },
      };
    },
  };
  return rememberLocation(definition, mcpEnvironment);
}

const OWN_PARTS = [
  "setupTimeoutMs",
  "observe",
  "prompt",
  "reply",
  "hear",
  "status",
  "stepReward",
  "oracle",
  "observation",
  "tasks",
  "tasksOf",
  "inlineTask",
  "functions",
] as const satisfies readonly (keyof OwnParts)[];

function ownParts(options: OwnParts): OwnParts {
  return Object.fromEntries(OWN_PARTS.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]));
}

/** The state is always what `setup` has returned; the type of the definition hides the rest from authors. */
function mounted(state: McpState): Mounted {
  return state as Mounted;
}

function forwarded({ name, title, description, inputSchema, outputSchema, annotations }: ToolDescriptor, timeoutMs: number) {
  const definition: ToolDefinition<McpState> = {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    input: inputSchema as never,
    ...(outputSchema !== undefined && { output: outputSchema }),
    ...(isRecord(annotations) && { annotations }),
    timeoutMs,
    run: (input, context: CallContext<McpState>) => mounted(context.state).runTool(name, input as object, context),
  };
  return definition;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A score of an episode whose server was lost would be a score of something else. */
function onlyAlive(reward: RewardDefinition<McpState>): RewardDefinition<McpState> {
  return {
    ...reward,
    score: (context) => {
      mounted(context.state).assertAlive();
      return reward.score(context);
    },
  };
}

async function healthOf(state: Mounted): Promise<HealthReport> {
  const { end } = state;
  const changes = end === null ? await state.changes() : null;
  return {
    status: "healthy",
    ...(end !== null && { server: `ended: ${end}` }),
    ...(changes !== null && { tools_changed: { ...changes } }),
  };
}

type PlaceContext = Pick<SetupContext, "variables" | "sandboxes" | "signal">;

/** What a server offers, for a list that an environment is bound to. */
export interface McpOffer {
  readonly pinned: PinnedTools;
  /** The names of its resources and prompts, sorted. */
  readonly resources: readonly string[];
  readonly prompts: readonly string[];
}

/** Starts a server as `mcpEnvironment` does, reads what it offers, and ends it. */
export async function describeMcpServer(
  options: McpCommandOptions | McpUrlOptions,
  variables: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<McpOffer> {
  const sandboxes = { isAvailable: false } as SetupContext["sandboxes"];
  const connector = await connectorFor(options, { variables, sandboxes, signal }, false);
  const startTimeoutMs = options.startTimeoutMs ?? TIMEOUT_MS;
  const state = await Mounted.open({ connector, pinned: undefined, isStrict: false, restarts: false, startTimeoutMs }, signal);
  const namesOf = async (capability: "resources" | "prompts", key: "uri" | "name") => {
    if (state.capabilities[capability] === undefined) return [];
    const { [capability]: list } = await state.request(`${capability}/list`, {}, { signal });
    return (Array.isArray(list) ? list : []).map((one) => String((one as Record<string, unknown>)[key])).sort();
  };
  try {
    const pinned = { ...pinTools(state.tools), server: state.server };
    return { pinned, resources: await namesOf("resources", "uri"), prompts: await namesOf("prompts", "name") };
  } finally {
    await state.close();
  }
}

async function connectorFor(
  options: McpCommandOptions | McpUrlOptions,
  context: PlaceContext,
  isRestored: boolean,
): Promise<ServerConnector> {
  if ("url" in options) {
    const headers = expandVariables(options.headers ?? {}, context.variables, SERVER);
    return httpConnector({ url: new URL(options.url), headers, policy: { allowPrivate: options.allowPrivate } });
  }
  const { command, env = {}, files = ["vendor"], workspace, image } = options;
  const program = { command, env: expandVariables(env, context.variables, SERVER), files, workspace, image };
  const place = await placeFor(program, context, isRestored);
  return {
    files: place.files,
    root: rootUrlOf(place.workspace),
    canFork: place.canFork,
    connect: async (events) => new StdioTransport(await place.start(), events),
    close: () => place.close(),
  };
}

/** A sandbox where the platform has them, else a folder. */
async function placeFor(program: ProgramOptions, context: PlaceContext, isRestored: boolean): Promise<ServerPlace> {
  if (!context.sandboxes.isAvailable) return openChildPlace(program);
  const copy = isRestored ? findSandboxPlace(program, context) : null;
  if (copy !== null) return copy;
  try {
    return await openSandboxPlace(program, context);
  } catch (error) {
    // The engine isolates nothing, so a sandbox would not either.
    if (isPlatformError(error, "instance.unsupported")) return openChildPlace(program);
    throw error;
  }
}
