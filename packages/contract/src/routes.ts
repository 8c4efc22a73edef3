/**
 * Who may knock where. The agent's door opens tools and nothing else; the trainer's door opens the rest.
 * The sandbox serves each row both at the root, for its first instance, and below `/env-instance/<id>`.
 */
export type Door = "agent" | "trainer";

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly door: Door;
  readonly does: string;
}

/** Routes of one instance, inside the sandbox and through the gateway. */
export const instanceRoutes = {
  mcp: { method: "POST", path: "/mcp", door: "agent", does: "MCP over Streamable HTTP" },
  mcpStream: { method: "GET", path: "/mcp", door: "agent", does: "the MCP session's own stream" },
  mcpEnd: { method: "DELETE", path: "/mcp", door: "agent", does: "end the MCP session" },
  health: { method: "GET", path: "/health", door: "trainer", does: "ask whether the instance is healthy" },
  listFunctions: { method: "GET", path: "/functions/list", door: "trainer", does: "list functions, rewards and health checks" },
  callFunction: { method: "POST", path: "/functions/:name", door: "trainer", does: "call a function" },
  reward: { method: "POST", path: "/task/reward", door: "trainer", does: "compute the reward" },
  listTasks: { method: "GET", path: "/task/list", door: "trainer", does: "list the tasks" },
  reset: { method: "POST", path: "/task/reset", door: "trainer", does: "begin a new episode" },
  snapshot: { method: "POST", path: "/state/snapshot", door: "trainer", does: "write the state down" },
  restore: { method: "POST", path: "/state/restore", door: "trainer", does: "go back to a snapshot" },
} as const satisfies Record<string, Route>;

/** Routes that make and end instances: the platform's control port, and a sandbox that slots many. */
export const controlRoutes = {
  createInstance: { method: "POST", path: "/env-instance", door: "trainer", does: "create an instance" },
  listInstances: { method: "GET", path: "/env-instance/:ref/list", door: "trainer", does: "list instances" },
  getInstance: { method: "GET", path: "/env-instance/:id", door: "trainer", does: "look at an instance" },
  deleteInstance: { method: "DELETE", path: "/env-instance/:id", door: "trainer", does: "end an instance" },
  forkInstance: { method: "POST", path: "/env-instance/:id/fork", door: "trainer", does: "make copies that go on from here" },
} as const satisfies Record<string, Route>;

/** Routes that make, change and end services, on the platform's control port. */
export const serviceRoutes = {
  createService: { method: "POST", path: "/env-service", door: "trainer", does: "create a service" },
  listServices: { method: "GET", path: "/env-service/:ref/list", door: "trainer", does: "list services" },
  getService: { method: "GET", path: "/env-service/:id", door: "trainer", does: "look at a service" },
  updateService: { method: "PUT", path: "/env-service/:id", door: "trainer", does: "change a service" },
  deleteService: { method: "DELETE", path: "/env-service/:id", door: "trainer", does: "end a service and its replicas" },
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
