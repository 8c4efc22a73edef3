import { formatRef, type InstanceRecord, instancePrefix, type ServiceRecord } from "@aenv/contract";
import { facts, statusText, table, timeText } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";

export function instanceTable(records: readonly InstanceRecord[], output: Output): string {
  const { colors } = output;
  const rows = records.map((one) => [
    colors.bold(one.id),
    environmentOf(one),
    one.owner ?? "",
    statusText(one.status, colors),
    timeText(one.created_at),
    timeText(textOf(one.expires_at)),
  ]);
  return table(["instance", "environment", "owner", "status", "created", "expires"], rows, output, ["created", "owner"]);
}

export function instanceFacts(one: InstanceRecord, output: Output): string {
  const { colors } = output;
  const labels = Object.entries(one.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  const ends = textOf(one.expires_at) === "" ? one.ttl : `${timeText(textOf(one.expires_at))}${one.ttl ? ` (${one.ttl})` : ""}`;
  return facts(
    [
      ["Instance", colors.bold(one.id)],
      ["Environment", environmentOf(one)],
      ["Status", statusText(one.status, colors)],
      ["Reason", textOf(one.reason)],
      ["Owner", one.owner],
      ["Task", textOf(one.task)],
      ["Seed", typeof one.seed === "number" ? String(one.seed) : ""],
      ["Started from", one.started_from ? `${one.started_from.name} (${one.started_from.fidelity})` : ""],
      ["Labels", labels.join(", ")],
      ["Created", timeText(one.created_at)],
      ["Updated", timeText(one.updated_at)],
      ["Expires", ends],
      ["For agents", linked(textOf(one.agent_url), "tools only", output)],
      ["For A2A clients", linked(textOf(one.a2a_url), "tools only", output)],
      ...Object.entries(one.role_urls ?? {}).map(([role, url]) => [`For ${role}`, linked(url, "tools of the role only", output)] as const),
      ["For trainers", linked(trainerUrl(one) ?? "", "everything", output)],
    ],
    output,
  );
}

/** The same with children below their roots. */
export function instanceTreeTable(records: readonly InstanceRecord[], output: Output): string {
  const { colors } = output;
  const depthOf = ({ path }: InstanceRecord) => (path ? path.split("/").length : 0);
  const rows = inTreeOrder(records).map((one) => [
    depthOf(one) === 0 ? colors.bold(one.id) : `${"  ".repeat(depthOf(one))}${one.path?.split("/").at(-1)}`,
    depthOf(one) === 0 ? "" : one.id,
    environmentOf(one),
    statusText(one.status, colors),
  ]);
  return table(["instance", "child", "environment", "status"], rows, output, []);
}

function inTreeOrder(records: readonly InstanceRecord[]): InstanceRecord[] {
  const keyOf = ({ id, root, path }: InstanceRecord) => `${root ?? id}/${path ?? ""}`;
  return [...records].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

/** How to use an instance: from an MCP client, or that of each role, and from the shell. */
export function usageLines(one: InstanceRecord, { colors }: Output): string[] {
  const agentUrl = textOf(one.agent_url);
  const [name = "environment"] = environmentOf(one).split("@");
  const servers: (readonly [string, string])[] = agentUrl === "" ? [] : [[name, agentUrl]];
  for (const [role, url] of Object.entries(one.role_urls ?? {})) servers.push([`${name}-${role}`, url]);
  if (servers.length === 0) return [];
  const about =
    servers.length > 1
      ? "For the configuration of MCP clients; the agent of a role gets its own only:"
      : "For the configuration of an MCP client:";
  const mcpServers = Object.fromEntries(servers.map(([key, url]) => [key, { type: "http", url }]));
  const shell =
    agentUrl === "" ? `aenv call --list --url ${servers[0]?.[1].replace(/\/mcp$/, "")}` : `aenv call --list --url ${trainerUrl(one)}`;
  return [
    colors.dim(`  ${about}`),
    JSON.stringify({ mcpServers }, null, 2).replace(/^/gm, "  "),
    "",
    `  ${colors.dim("From the shell:")} ${shell}`,
  ];
}

/** The URL of all the instance's routes; null if the server does not return its address. */
export function trainerUrl(one: InstanceRecord): string | null {
  const [agentUrl = ""] = agentUrls(one);
  return agentUrl === "" ? null : agentUrl.replace(/\/agent\/[^/]+\/mcp$/, instancePrefix(one.id));
}

/** The links of its agents: one, or one for each role. */
function agentUrls(one: InstanceRecord): string[] {
  return [textOf(one.agent_url), ...Object.values(one.role_urls ?? {})].filter((url) => url !== "");
}

export function environmentOf(one: InstanceRecord | ServiceRecord): string {
  return textOf(one.environment) || (one.env ? formatRef(one.env) : "");
}

function linked(url: string, access: string, { colors }: Output): string {
  return url === "" ? "" : `${colors.cyan(url)}  ${colors.dim(access)}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
