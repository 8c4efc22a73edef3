import type { ServiceRecord } from "@aenv/contract";
import { facts, statusText, table, timeText } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";
import { environmentOf } from "./instance-view.ts";

export function serviceTable(records: readonly ServiceRecord[], output: Output): string {
  const { colors } = output;
  const rows = records.map((one) => [
    colors.bold(one.id),
    environmentOf(one),
    one.owner ?? "",
    statusText(one.status, colors),
    replicasText(one, output),
    one.pvc_name ?? "",
    timeText(one.created_at),
  ]);
  return table(["service", "environment", "owner", "status", "replicas", "storage", "created"], rows, output, ["created", "owner"]);
}

export function serviceFacts(one: ServiceRecord, output: Output): string {
  const { colors } = output;
  return facts(
    [
      ["Service", colors.bold(one.id)],
      ["Environment", environmentOf(one)],
      ["Status", statusText(one.status, colors)],
      ["Reason", typeof one.reason === "string" ? one.reason : ""],
      ["Replicas", replicasText(one, output)],
      ["Owner", one.owner],
      ["Variables", Object.keys(one.environment_variables ?? {}).join(", ")],
      ["Storage", one.pvc_name],
      ["Created", timeText(one.created_at)],
      ["Updated", timeText(one.updated_at)],
      ["Address", one.service_url ? colors.cyan(withScheme(one.service_url)) : ""],
    ],
    output,
  );
}

/** Records have host and port only, like the original's. */
function withScheme(address: string): string {
  return address.includes("://") ? address : `http://${address}`;
}

function replicasText({ available_replicas: available, replicas }: ServiceRecord, { colors }: Output): string {
  const text = `${available}/${replicas}`;
  if (available === 0) return colors.red(text);
  return available < replicas ? colors.yellow(text) : colors.green(text);
}
