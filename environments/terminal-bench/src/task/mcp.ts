import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { type McpServerConfig, mcpServer } from "./config/mcp-server.ts";

/** The MCP servers of an agent: the task's, then the run's; a later one replaces an earlier one of the same name. */
export function mergeMcpServers(...lists: readonly (readonly McpServerConfig[])[]): McpServerConfig[] {
  return [...new Map(lists.flat().map((server) => [server.name, server])).values()];
}

/** The servers of a run's MCP file: `mcpServers` is a table by name, `mcp_servers` a list or a table. */
export function parseMcpFile(document: unknown): McpServerConfig[] {
  const inner = isTable(document) && isTable(document.environment) ? document.environment : document;
  if (!isTable(inner)) throw new InvalidValue("", "expected a table with mcpServers or mcp_servers");
  const given = inner.mcpServers ?? inner.mcp_servers;
  if (Array.isArray(given)) return given.map((server, i) => parseServer(server, `mcp_servers[${i}]`));
  if (!isTable(given)) throw new InvalidValue("", "expected mcpServers or mcp_servers");
  return Object.entries(given).map(([name, server]) => parseServer(isTable(server) ? { name, ...server } : server, `mcpServers.${name}`));
}

/** `type` is another name of `transport`; a server with a command and no transport is started by it. */
function parseServer(given: unknown, at: string): McpServerConfig {
  if (!isTable(given)) throw new InvalidValue(at, "expected a table");
  const transport = given.transport ?? given.type ?? ("command" in given ? "stdio" : undefined);
  return mcpServer.parse({ ...given, ...(transport !== undefined && { transport }) }, at);
}

/** Where injected skills go in the sandbox: an absolute directory, because agents look it up from any working directory. */
export function skillsDirectory(skillsDir: string | null, hasInjected: boolean): string {
  if (skillsDir === null) return "/runtime/skills";
  if (hasInjected && !skillsDir.startsWith("/"))
    throw new InvalidValue("environment.skills_dir", `'${skillsDir}' must be absolute to add skills`);
  return skillsDir;
}
