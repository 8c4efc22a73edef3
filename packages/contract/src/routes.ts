/**
 * Which clients may call a route of a sandbox. The agent API is tools only; the trainer API is everything else about an instance.
 * Routes of the platform are called by the server itself, directly at the sandbox: the gateway refuses them.
 */
export type Api = "agent" | "trainer" | "platform";

export interface Route {
  /** `*` is any method. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE" | "*";
  /** `:name` is one segment; `/*` at the end is any path. */
  readonly path: string;
  readonly does: string;
}

export interface SandboxRoute extends Route {
  readonly api: Api;
}

/** Routes of one instance: at the root for the sandbox's first instance, and below `/env-instance/<id>` for each. The gateway lets these through. */
export const instanceRoutes = {
  mcp: { method: "POST", path: "/mcp", api: "agent", does: "MCP over Streamable HTTP" },
  mcpStream: { method: "GET", path: "/mcp", api: "agent", does: "the MCP session's own stream" },
  mcpEnd: { method: "DELETE", path: "/mcp", api: "agent", does: "end the MCP session" },
  agentCard: { method: "GET", path: "/.well-known/agent-card.json", api: "agent", does: "get the A2A card" },
  a2a: { method: "POST", path: "/a2a", api: "agent", does: "A2A over JSON-RPC" },
  a2aHttp: { method: "*", path: "/a2a/*", api: "agent", does: "A2A over HTTP and JSON" },
  health: { method: "GET", path: "/health", api: "trainer", does: "check whether the instance is healthy" },
  listFunctions: { method: "GET", path: "/functions/list", api: "trainer", does: "list functions, rewards and health checks" },
  callFunction: { method: "POST", path: "/functions/:name", api: "trainer", does: "call a function" },
  reward: { method: "POST", path: "/task/reward", api: "trainer", does: "compute the reward" },
  listTasks: { method: "GET", path: "/task/list", api: "trainer", does: "list the tasks" },
  reset: { method: "POST", path: "/task/reset", api: "trainer", does: "begin a new episode" },
  snapshot: { method: "POST", path: "/state/snapshot", api: "trainer", does: "take a snapshot of the state" },
  restore: { method: "POST", path: "/state/restore", api: "trainer", does: "restore a snapshot" },
  digest: { method: "GET", path: "/state/digest", api: "trainer", does: "compute the digest of the state" },
  abilities: { method: "GET", path: "/episode", api: "trainer", does: "list the parts of an episode that the environment defines" },
  prompt: { method: "GET", path: "/episode/prompt", api: "trainer", does: "get the messages that an agent begins with" },
  reply: { method: "POST", path: "/episode/reply", api: "trainer", does: "answer a message of the agent that calls no tool" },
  hear: { method: "POST", path: "/episode/hear", api: "trainer", does: "take what the agent writes beside tool calls" },
  status: { method: "GET", path: "/episode/status", api: "trainer", does: "check whether the episode is over" },
  stepReward: { method: "POST", path: "/episode/reward", api: "trainer", does: "compute the reward of the last step" },
  children: {
    method: "GET",
    path: "/episode/children",
    api: "trainer",
    does: "list the instances of other environments that belong to the episode",
  },
  recording: {
    method: "GET",
    path: "/episode/recording",
    api: "trainer",
    does: "read the calls of models by the environment's code in this episode, as lines of JSON",
  },
  oracle: { method: "GET", path: "/episode/oracle", api: "trainer", does: "get the actions that solve the task" },
  roleMcp: { method: "POST", path: "/role/:role/mcp", api: "trainer", does: "MCP over Streamable HTTP, for the agent of a role" },
  roleMcpStream: { method: "GET", path: "/role/:role/mcp", api: "trainer", does: "the own stream of a role's MCP session" },
  roleMcpEnd: { method: "DELETE", path: "/role/:role/mcp", api: "trainer", does: "end a role's MCP session" },
  forfeit: { method: "POST", path: "/role/:role/forfeit", api: "trainer", does: "end the play of a role that gives up" },
  callEndpoint: {
    method: "*",
    path: "/*",
    api: "trainer",
    does: "call a function, reward or health check at the endpoint its author chose",
  },
} as const satisfies Record<string, SandboxRoute>;

/** The names of an instance's routes in an API. */
export type InstanceRouteName<A extends Api> = {
  [Name in keyof typeof instanceRoutes]: (typeof instanceRoutes)[Name]["api"] extends A ? Name : never;
}[keyof typeof instanceRoutes];

/** Routes of the platform's control port for instances. Their roles are in `server/src/api`. */
export const controlRoutes = {
  createInstance: { method: "POST", path: "/env-instance", does: "create an instance" },
  createInstances: { method: "POST", path: "/env-instance/batch", does: "create many instances" },
  pageInstances: { method: "GET", path: "/env-instance/list", does: "list instances, a page at a time" },
  listInstances: { method: "GET", path: "/env-instance/:ref/list", does: "list instances" },
  getInstance: { method: "GET", path: "/env-instance/:id", does: "get an instance" },
  deleteInstance: { method: "DELETE", path: "/env-instance/:id", does: "delete an instance" },
  renewInstance: { method: "POST", path: "/env-instance/:id/renew", does: "extend the instance's time to live" },
  resetInstance: { method: "POST", path: "/env-instance/:id/reset", does: "begin a new episode" },
  snapshotInstance: { method: "POST", path: "/env-instance/:id/snapshot", does: "take a snapshot" },
  forkInstance: { method: "POST", path: "/env-instance/:id/fork", does: "create copies that continue from the current state" },
  listEvents: { method: "GET", path: "/env-instance/:id/events", does: "list the instance's events" },
  readLogs: { method: "GET", path: "/env-instance/:id/logs", does: "read the log of the instance's sandbox" },
  presignUrl: { method: "POST", path: "/env-instance/:id/presign-url", does: "create a link to a port inside the sandbox" },
} as const satisfies Record<string, Route>;

/** Routes of the control port for stored snapshots. */
export const snapshotRoutes = {
  pageSnapshots: { method: "GET", path: "/snapshots", does: "list stored snapshots, a page at a time" },
  getSnapshot: { method: "GET", path: "/snapshots/:id", does: "get a stored snapshot" },
  deleteSnapshot: { method: "DELETE", path: "/snapshots/:id", does: "delete a stored snapshot" },
} as const satisfies Record<string, Route>;

/** Routes of the control port for commands in the sandbox of an instance. */
export const commandRoutes = {
  exec: { method: "POST", path: "/env-instance/:id/exec", does: "run a command in the sandbox" },
  terminal: { method: "GET", path: "/env-instance/:id/terminal", does: "run a command or a terminal over a WebSocket" },
  listen: { method: "GET", path: "/env-instance/:id/listen", does: "listen on a port inside the sandbox, and get its connections" },
  listCommands: { method: "GET", path: "/env-instance/:id/commands", does: "list the commands" },
  attachCommand: { method: "GET", path: "/env-instance/:id/commands/:command", does: "follow a command that was started before" },
  signalCommand: { method: "POST", path: "/env-instance/:id/commands/:command/signal", does: "send a signal to a command" },
} as const satisfies Record<string, Route>;

/** Routes of the control port for files in the sandbox of an instance. */
export const fileRoutes = {
  readFile: { method: "GET", path: "/env-instance/:id/files", does: "read a file" },
  writeFile: { method: "PUT", path: "/env-instance/:id/files", does: "write a file" },
  removeFile: { method: "DELETE", path: "/env-instance/:id/files", does: "remove a file or a folder" },
  listFiles: { method: "GET", path: "/env-instance/:id/files/list", does: "list a folder" },
  statFile: { method: "GET", path: "/env-instance/:id/files/stat", does: "describe a file or a folder" },
  makeFolder: { method: "POST", path: "/env-instance/:id/files/mkdir", does: "create a folder" },
  renameFile: { method: "POST", path: "/env-instance/:id/files/rename", does: "rename a file or a folder" },
  watchFiles: { method: "GET", path: "/env-instance/:id/files/watch", does: "follow the changes in a folder" },
  packFiles: { method: "GET", path: "/env-instance/:id/files/archive", does: "read a folder as a tar archive" },
  unpackFiles: { method: "PUT", path: "/env-instance/:id/files/archive", does: "unpack a tar archive into a folder" },
} as const satisfies Record<string, Route>;

/** Routes by which the platform manages the instances in a sandbox. They look like the control port's, so that one client can use both. */
export const hostRoutes = {
  describe: { method: "GET", path: "/env-instance", api: "platform", does: "describe the environment: tools, functions, number of tasks" },
  create: { ...controlRoutes.createInstance, api: "platform" },
  list: { method: "GET", path: "/env-instance/list", api: "platform", does: "list the instances" },
  listOf: { ...controlRoutes.listInstances, api: "platform" },
  get: { ...controlRoutes.getInstance, api: "platform" },
  delete: { ...controlRoutes.deleteInstance, api: "platform" },
  fork: { ...controlRoutes.forkInstance, api: "platform" },
  forkSpec: {
    method: "GET",
    path: "/env-instance/:id/fork-spec",
    api: "platform",
    does: "get all that another sandbox needs to continue this instance",
  },
  rename: {
    method: "POST",
    path: "/env-instance/:id/rename",
    api: "platform",
    does: "give the instance another id, in a copy of its sandbox",
  },
} as const satisfies Record<string, SandboxRoute>;

/** Routes of the process that loads an environment. The gateway calls only paths below an instance, so it cannot reach these. */
export const runnerRoutes = {
  bind: { method: "POST", path: "/bind", api: "platform", does: "load an environment into a process that has none yet" },
  link: { method: "GET", path: "/platform", api: "platform", does: "upgrade to the connection over which an environment opens sandboxes" },
  stop: { method: "POST", path: "/stop", api: "platform", does: "end the process" },
} as const satisfies Record<string, SandboxRoute>;

/** All routes of a sandbox that serves an environment. */
export const sandboxRoutes: Readonly<Record<string, SandboxRoute>> = { ...instanceRoutes, ...hostRoutes };

/** Routes that create, change and delete services, on the platform's control port. */
export const serviceRoutes = {
  createService: { method: "POST", path: "/env-service", does: "create a service" },
  listServices: { method: "GET", path: "/env-service/:ref/list", does: "list services" },
  getService: { method: "GET", path: "/env-service/:id", does: "get a service" },
  updateService: { method: "PUT", path: "/env-service/:id", does: "change a service" },
  deleteService: { method: "DELETE", path: "/env-service/:id", does: "delete a service and its replicas" },
} as const satisfies Record<string, Route>;

/** Routes of the control port for trainers that sample turn by turn. */
export const sessionRoutes = {
  createSession: { method: "POST", path: "/sessions", does: "begin an episode that the caller plays step by step" },
  stepSession: { method: "POST", path: "/sessions/:id/step", does: "call a tool or say something" },
  scoreSession: { method: "POST", path: "/sessions/:id/score", does: "score the episode" },
  deleteSession: { method: "DELETE", path: "/sessions/:id", does: "end the session" },
  listEnvironmentTasks: { method: "GET", path: "/environments/:ref/tasks", does: "list the tasks of an environment" },
} as const satisfies Record<string, Route>;

/** Routes that play episodes for trainers, on the platform's control port. Their answers have no envelope. */
export const rolloutRoutes = {
  createRollouts: { method: "POST", path: "/rollouts", does: "play episodes" },
  pageRollouts: { method: "GET", path: "/rollouts", does: "list rollouts, a page at a time" },
  getRollout: { method: "GET", path: "/rollouts/:id", does: "get the result of a rollout" },
  cancelRollout: { method: "DELETE", path: "/rollouts/:id", does: "cancel a rollout" },
} as const satisfies Record<string, Route>;

/** The id of a sandbox's first instance, the one served at the root. */
export const FIRST_INSTANCE = "default";

/** Where an instance's routes begin: `/env-instance/shop-1a2b3c`. */
export function instancePrefix(id: string): string {
  return `/env-instance/${encodeURIComponent(id)}`;
}

/** Where a service's routes begin on the data port: those of an instance, answered by one of its replicas. */
export function servicePrefix(id: string): string {
  return `/env-service/${encodeURIComponent(id)}`;
}

/** A route's path with its `:names` filled in, each as one escaped segment. */
export function fillPath(route: Route, names: Readonly<Record<string, string>> = {}): string {
  return route.path.replace(/:(\w+)/g, (_, name: string) => {
    const value = names[name];
    if (value === undefined) throw new TypeError(`${route.path} needs '${name}'`);
    return encodeURIComponent(value);
  });
}

/** True if the segments match the route's path. The caller decides whether they are decoded. */
export function matchesPath(path: string, segments: readonly string[]): boolean {
  const wanted = splitPaths.get(path) ?? path.split("/").slice(1);
  splitPaths.set(path, wanted);
  const isOpen = wanted.at(-1) === "*";
  const fixed = isOpen ? wanted.slice(0, -1) : wanted;
  if (isOpen ? segments.length <= fixed.length : segments.length !== fixed.length) return false;
  return fixed.every((one, at) => one === segments[at] || (one.startsWith(":") && segments[at] !== ""));
}

/** The segments of the route table's paths, so that they are split once. */
const splitPaths = new Map<string, readonly string[]>();

/** Paths of a sandbox's routes below an instance's prefix, by API. */
export function pathsBelowInstance(api: Api, routes: Readonly<Record<string, SandboxRoute>> = sandboxRoutes): readonly string[] {
  const paths = Object.values(routes).flatMap((route) => (route.api === api ? [belowInstance(route)] : []));
  return [...new Set(paths.filter((path) => path !== null))];
}

/** Everything below these belongs to the platform, so that it can add routes there. */
const RESERVED_PREFIXES = ["/mcp/", "/env-instance/", "/state/", "/episode/", "/role/"];
/** At these, an author may serve other methods. */
const SHARED_PATHS: readonly string[] = [instanceRoutes.health.path, instanceRoutes.reward.path];

/** True if an environment's author may not choose this endpoint for a function, a reward or a health check. */
export function isReservedEndpoint(method: string, path: string): boolean {
  if (RESERVED_PREFIXES.some((prefix) => path.startsWith(prefix))) return true;
  const routes = Object.values(sandboxRoutes).filter((route) => route.path === path || belowInstance(route) === path);
  return routes.some((route) => route.method === method || !SHARED_PATHS.includes(path));
}

/** Null for a route that is not about one instance. */
function belowInstance({ path }: SandboxRoute): string | null {
  if (!path.startsWith("/env-instance")) return path;
  return /^\/env-instance\/:\w+(.*)$/.exec(path)?.[1] ?? null;
}

/** Headers of the original's data plane, and those by which the gateway tells a sandbox what clients know about it. */
export const headers = {
  /** Where the paths of the instance begin for the client. */
  baseUrl: "aenv-base-url",
  /** `1` if clients send a token. */
  needsToken: "aenv-needs-token",
  instanceId: "AEnvCore-EnvInstance-ID",
  proxyUrl: "AEnvCore-MCPProxy-URL",
  traceId: "env-instance-trace-id",
} as const;
