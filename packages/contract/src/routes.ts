/**
 * Who may knock where. The agent's api opens tools and nothing else; the trainer's api opens the rest.
 * The sandbox serves each row both at the root, for its first instance, and below `/env-instance/<id>`.
 */
export type Api = "agent" | "trainer";

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly api: Api;
  readonly does: string;
}

/** Routes of one instance, inside the sandbox and through the gateway. */
export const instanceRoutes = {
  mcp: { method: "POST", path: "/mcp", api: "agent", does: "MCP over Streamable HTTP" },
  mcpStream: { method: "GET", path: "/mcp", api: "agent", does: "the MCP session's own stream" },
  mcpEnd: { method: "DELETE", path: "/mcp", api: "agent", does: "end the MCP session" },
  health: { method: "GET", path: "/health", api: "trainer", does: "ask whether the instance is healthy" },
  listFunctions: { method: "GET", path: "/functions/list", api: "trainer", does: "list functions, rewards and health checks" },
  callFunction: { method: "POST", path: "/functions/:name", api: "trainer", does: "call a function" },
  reward: { method: "POST", path: "/task/reward", api: "trainer", does: "compute the reward" },
  listTasks: { method: "GET", path: "/task/list", api: "trainer", does: "list the tasks" },
  reset: { method: "POST", path: "/task/reset", api: "trainer", does: "begin a new episode" },
  snapshot: { method: "POST", path: "/state/snapshot", api: "trainer", does: "write the state down" },
  restore: { method: "POST", path: "/state/restore", api: "trainer", does: "go back to a snapshot" },
} as const satisfies Record<string, Route>;

/** Routes that make and end instances: the platform's control port, and a sandbox that slots many. */
export const controlRoutes = {
  createInstance: { method: "POST", path: "/env-instance", api: "trainer", does: "create an instance" },
  listInstances: { method: "GET", path: "/env-instance/:ref/list", api: "trainer", does: "list instances" },
  getInstance: { method: "GET", path: "/env-instance/:id", api: "trainer", does: "look at an instance" },
  deleteInstance: { method: "DELETE", path: "/env-instance/:id", api: "trainer", does: "end an instance" },
  forkInstance: { method: "POST", path: "/env-instance/:id/fork", api: "trainer", does: "make copies that go on from here" },
} as const satisfies Record<string, Route>;

/** Routes that make, change and end services, on the platform's control port. */
export const serviceRoutes = {
  createService: { method: "POST", path: "/env-service", api: "trainer", does: "create a service" },
  listServices: { method: "GET", path: "/env-service/:ref/list", api: "trainer", does: "list services" },
  getService: { method: "GET", path: "/env-service/:id", api: "trainer", does: "look at a service" },
  updateService: { method: "PUT", path: "/env-service/:id", api: "trainer", does: "change a service" },
  deleteService: { method: "DELETE", path: "/env-service/:id", api: "trainer", does: "end a service and its replicas" },
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

/** Headers of the original's data plane. */
export const headers = {
  instanceId: "AEnvCore-EnvInstance-ID",
  proxyUrl: "AEnvCore-MCPProxy-URL",
  traceId: "env-instance-trace-id",
} as const;
