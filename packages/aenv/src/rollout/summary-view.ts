import type { MeanWithInterval, RunSummary } from "@aenv/rollout";
import { plain } from "../terminal/plain.ts";
import { facts, table } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";

const MAX_TASKS = 30;

/** The numbers of a run as text. */
export function summaryText(summary: RunSummary, output: Output): string {
  const { colors } = output;
  const { episodes, scored, reward } = summary;
  const most = Math.max(0, ...Object.keys(summary.passAtK).map(Number));
  const rows: [string, string | null][] = [
    ["episodes", `${episodes}, ${scored} scored`],
    ["unscored", unscoredText(summary.unscored)],
    ["mean reward", meanText(reward)],
    ["pass@1", passText(summary.passAtK, 1)],
    [`pass@${most}`, most > 1 ? passText(summary.passAtK, most) : null],
    [`pass^${most}`, most > 1 ? passText(summary.passHatK, most) : null],
    ["cost", costText(summary)],
    ["time", timeText(summary.seconds)],
  ];
  const tasks = summary.tasks
    .slice(0, MAX_TASKS)
    .map(({ task, scored: own, episodes: of, mean, deviation, passes }) => [
      task || "(no task)",
      `${own}/${of}`,
      mean === null ? colors.dim("-") : number(mean),
      deviation === null ? colors.dim("-") : number(deviation),
      own === 0 ? colors.dim("-") : `${passes}/${own}`,
    ]);
  const rest =
    summary.tasks.length > MAX_TASKS ? `\n  ${colors.dim(`and ${summary.tasks.length - MAX_TASKS} more tasks, in summary.json`)}` : "";
  const parts = componentRows(summary);
  const components = parts.length === 0 ? "" : `\n${table(["component", "mean", "episodes"], parts, output)}`;
  const roles = [roleTable("role", summary.roles, output), roleTable("player", summary.players, output)].join("");
  return `${table(["task", "scored", "mean", "deviation", "passed"], tasks, output)}${rest}${roles}${components}\n\n${facts(rows, output)}`;
}

/** What each role or player got; nothing without roles. */
function roleTable(title: string, roles: RunSummary["roles"], output: Output): string {
  if (roles === undefined) return "";
  const rows = Object.entries(roles).map(([name, { episodes, scored, forfeited, reward }]) => [
    name,
    `${scored}/${episodes}`,
    reward === null ? output.colors.dim("-") : meanText(reward),
    String(forfeited),
  ]);
  return `\n${table([title, "scored", "mean", "gave up"], rows, output)}`;
}

/** The parts of the reward; none if there is one part only, which is the reward itself. */
function componentRows({ components = {} }: RunSummary): string[][] {
  const all = Object.entries(components);
  return all.length < 2 ? [] : all.map(([name, { mean, episodes }]) => [plain(name), number(mean), String(episodes)]);
}

export function meanText(reward: MeanWithInterval | null): string {
  if (reward === null) return "none: no episode was scored";
  const { mean, low, high } = reward;
  return low === null || high === null ? number(mean) : `${number(mean)} (95 %: ${number(low)} to ${number(high)})`;
}

function passText(estimates: RunSummary["passAtK"], k: number): string | null {
  const estimate = estimates[k];
  return estimate === undefined ? null : `${(100 * estimate.value).toFixed(1)} % of ${estimate.tasks} tasks`;
}

/** Null for runs without prices; runs of older versions have no such field. */
export function costText({ cost, episodes }: Pick<RunSummary, "cost" | "episodes">): string | null {
  if (!cost) return null;
  const of = cost.episodes === episodes ? "" : ` for ${cost.episodes} of ${episodes} episodes; the others have no known cost`;
  return `${moneyText(cost.total)}${cost.perPass === null ? "" : `, ${moneyText(cost.perPass)} per passed episode`}${of}`;
}

export function moneyText(amount: number): string {
  return amount >= 1 || amount === 0 ? amount.toFixed(2) : amount.toPrecision(2);
}

function timeText(seconds: RunSummary["seconds"]): string | null {
  return seconds ? `median ${seconds.median.toFixed(2)} s, 95 % within ${seconds.p95.toFixed(2)} s` : null;
}

function unscoredText(unscored: RunSummary["unscored"]): string | null {
  const causes = Object.entries(unscored).map(([cause, count]) => `${count} ${cause}`);
  return causes.length === 0 ? null : `${causes.join(", ")}; left out of all numbers`;
}

function number(value: number): string {
  return value.toFixed(3);
}
