import type { Task } from "../task/model.ts";
import { resolveHeaders } from "../templates/headers.ts";
import type { HostVariables } from "../templates/template.ts";

/** Where the MCP servers of a task are listed for the agent, in the form that most clients read. */
export const MCP_FILE = "/harbor/mcp.json";

/** Files that tell an agent in the sandbox what the task offers. */
export function agentFiles({ config }: Task, host: HostVariables): readonly (readonly [path: string, text: string])[] {
  const { mcp_servers } = config.environment;
  if (mcp_servers.length === 0) return [];
  const servers = Object.fromEntries(
    mcp_servers.map(({ name, headers, ...server }) => [
      name,
      withoutNulls({ ...server, headers: Object.keys(headers).length === 0 ? null : resolveHeaders(headers, host) }),
    ]),
  );
  return [[MCP_FILE, `${JSON.stringify({ mcpServers: servers }, null, 2)}\n`]];
}

/** The same for a model: what is said before the instruction. */
export function agentHints({ config }: Task): readonly string[] {
  const { mcp_servers, skills_dir } = config.environment;
  return [
    ...(skills_dir === null ? [] : [`Skills for this task are described in the folder ${skills_dir}.`]),
    ...(mcp_servers.length === 0 ? [] : [`MCP servers for this task are listed in ${MCP_FILE}.`]),
  ];
}

function withoutNulls(table: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).filter(([, value]) => value !== null));
}
