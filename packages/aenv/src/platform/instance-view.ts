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

/** How to use an instance: from an MCP client and from the shell. */
export function usageLines(one: InstanceRecord, { colors }: Output): string[] {
  const agentUrl = textOf(one.agent_url);
  if (agentUrl === "") return [];
  const [name = "environment"] = environmentOf(one).split("@");
  const snippet = JSON.stringify({ mcpServers: { [name]: { type: "http", url: agentUrl } } }, null, 2);
  return [
    colors.dim("  For the configuration of an MCP client:"),
    snippet.replace(/^/gm, "  "),
    "",
    `  ${colors.dim("From the shell:")} aenv call --list --url ${trainerUrl(one)}`,
  ];
}

/** The URL of all the instance's routes; null if the server does not return its address. */
export function trainerUrl(one: InstanceRecord): string | null {
  const agentUrl = textOf(one.agent_url);
  return agentUrl === "" ? null : agentUrl.replace(/\/agent\/[^/]+\/mcp$/, instancePrefix(one.id));
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
