import type { Caller } from "../access/access.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { type McpSessions, RpcError } from "./mcp.ts";
import type { Registry } from "./registry.ts";
import type { OpenEnvSession } from "./session.ts";

/** The sessions that MCP requests use: `own` is the session of the WebSocket; plain HTTP has none. */
export function mcpSessions(
  registry: Registry,
  caller: Caller,
  version: EnvironmentVersion,
  own: OpenEnvSession | null = null,
): McpSessions {
  const named = (id: string) => {
    const session = registry.find(id, `${version.name}@${version.version}`, caller);
    if (session === null) throw new RpcError(-32602, `Unknown session_id: ${id}`);
    return session;
  };
  return {
    use: (id, work) => {
      if (id !== undefined) return work(named(id));
      return own === null ? registry.once(version, caller, work) : work(own);
    },
    create: () => own ?? registry.open(version, caller, { isAttached: false }),
    end: async (id) => {
      const session = named(id);
      if (registry.isAttached(session)) throw new RpcError(-32600, `Session ${id} is used by a WebSocket; close that first`);
      await registry.end(session);
    },
  };
}
