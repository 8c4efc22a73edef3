import type { Caller, EnvironmentVersion } from "@aenv/server/trainer-services";
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
  const named = async (id: string) => {
    const session = await registry.find(id, version, caller);
    if (session === null) throw new RpcError(-32602, `Unknown session_id: ${id}`);
    return session;
  };
  return {
    use: async (id, work) => {
      if (id !== undefined) return work(await named(id));
      return own === null ? registry.once(version, caller, work) : work(own);
    },
    create: async () => {
      if (own === null) return registry.openShared(version, caller);
      await own.share();
      return own;
    },
    end: async (id) => {
      const session = await named(id);
      if (registry.isAttached(session)) throw new RpcError(-32600, `Session ${id} is used by a WebSocket; close that first`);
      await registry.end(session);
    },
  };
}
