import { plain } from "../terminal/plain.ts";
import { bytesText, facts, table, timeText, truncate } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";
import type { Group, ServerStatus } from "./server-status.ts";

/** Rows of each list. */
const SHOWN = 8;
const REASON_LENGTH = 60;

/** A server's status as a page. With an earlier one, its totals are shown as rates. */
export function statusPage(status: ServerStatus, before: ServerStatus | null, output: Output): string {
  const { colors } = output;
  const { instances, queue, pools, totals, rollouts } = status;
  const perSecond = rates(status, before);
  const health = status.ready ? colors.green("ready") : colors.red(`not ready: store ${status.store}, disk ${status.disk}`);
  const done = Object.entries(rollouts.done).map(([outcome, count]) => `${count} ${outcome}`);
  const waiting = Object.values(queue).reduce((sum, count) => sum + count, 0);
  const alert = (count: number, text: string) => (count > 0 ? colors.yellow(text) : text);
  const failed = (count: number) => (count > 0 ? `, ${colors.red(`${count} failed`)}` : "");
  const blocks = [
    `${colors.bold(status.url)}  ${health}  ${colors.dim(timeText(status.at))}`,
    facts(
      [
        ["Instances", `${instances.live} live, ${instances.frozen} frozen, shared processes: ${instances.sharedProcesses}`],
        [
          "Queue",
          alert(
            waiting,
            `${queue.starts} starts, ${queue.startsForMemory} starts for memory, ${queue.rollouts} rollouts, ${queue.verifications} verifications`,
          ),
        ],
        [
          "Pools",
          `blank ${pools.blank.ready} of ${pools.blank.target} ready, prepared ${pools.prepared.ready} of ${pools.prepared.target}${pools.backedOff > 0 ? `, ${colors.red(`${pools.backedOff} backed off`)}` : ""}`,
        ],
        ["Started", `${totals.started} in all${failed(totals.failedStarts)}${perSecond("started")}`],
        ["Calls", `${totals.calls}${failed(totals.failedCalls)}${perSecond("calls")}`],
        ["Rollouts", `${rollouts.running} running${done.length === 0 ? "" : `, done: ${done.join(", ")}`}`],
        ["Server", `${bytesText(status.memoryBytes)} of memory, workers: ${status.workers}${cpuText(status, before)}`],
      ],
      output,
    ),
    groupTable("environment", status.environments, output),
    groupTable("owner", status.owners, output),
    failureTable(status, output),
  ];
  return blocks.filter((block) => block !== "").join("\n");
}

function groupTable(noun: string, groups: readonly Group[], output: Output): string {
  if (groups.length === 0) return "";
  const { colors } = output;
  const rows = groups
    .slice(0, SHOWN)
    .map(({ name, starting, running, failed }) => [
      colors.bold(plain(name)),
      String(starting),
      colors.green(String(running)),
      failed > 0 ? colors.red(String(failed)) : "0",
    ]);
  return table([noun, "starting", "running", "failed"], rows, output) + more(groups.length, output);
}

function failureTable({ failures }: ServerStatus, output: Output): string {
  if (failures.length === 0) return "";
  const rows = failures
    .slice(0, SHOWN)
    .map(({ id, owner, at, reason }) => [output.colors.bold(id), plain(owner), timeText(at), truncate(plain(reason), REASON_LENGTH)]);
  return table(["failed instance", "owner", "at", "reason"], rows, output) + more(failures.length, output);
}

function more(count: number, { colors }: Output): string {
  return count > SHOWN ? `\n${colors.dim(`  and ${count - SHOWN} more; --json has all of them`)}` : "";
}

function rates(status: ServerStatus, before: ServerStatus | null): (key: "started" | "calls") => string {
  const seconds = secondsBetween(status, before);
  return (key) =>
    before === null || seconds <= 0 ? "" : `, ${(Math.max(0, status.totals[key] - before.totals[key]) / seconds).toFixed(1)}/s`;
}

function cpuText(status: ServerStatus, before: ServerStatus | null): string {
  const seconds = secondsBetween(status, before);
  if (before === null || seconds <= 0) return "";
  return `, ${Math.round((Math.max(0, status.totals.cpuSeconds - before.totals.cpuSeconds) / seconds) * 100)} % of a core`;
}

function secondsBetween(status: ServerStatus, before: ServerStatus | null): number {
  return before === null ? 0 : (Date.parse(status.at) - Date.parse(before.at)) / 1_000;
}
