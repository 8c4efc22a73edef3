import { type ChatMessage, type ContentBlock, nearestName, type Step, type Trajectory, type TrajectoryRole, textOf } from "@aenv/contract";
import type { RunFolder } from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";
import { plain } from "../terminal/plain.ts";
import { facts } from "../terminal/table.ts";
import type { Output } from "../terminal/terminal.ts";
import { moneyText } from "./summary-view.ts";

const LISTED = 10;

/** The episode that is named as its task's number or id, and its sample: `0-1` or `greet-1`. The id alone is the first sample. */
export async function findEpisode(run: RunFolder, wanted: string): Promise<Trajectory> {
  const names: string[] = [];
  for await (const episode of run.trajectories()) {
    const { id, task, group } = episode;
    const name = task.id === null ? shortIdOf(id) : `${task.id}-${group?.index ?? 0}`;
    if (wanted === shortIdOf(id) || wanted === name || (wanted === task.id && (group?.index ?? 0) === 0)) return episode;
    names.push(name);
  }
  const nearest = nearestName(wanted, names);
  const more = names.length > LISTED ? `, and ${names.length - LISTED} more` : "";
  throw new Failure(`run '${run.name}' has no episode '${wanted}'`, {
    exit: "usage",
    hint: `${nearest === null ? "" : `Did you mean ${nearest}? `}Its episodes: ${names.slice(0, LISTED).join(", ")}${more}`,
  });
}

/** Ends with the number of the task and the sample. */
function shortIdOf(id: string): string {
  return id.slice(id.lastIndexOf("/") + 1);
}

/** One episode as text: what it was, what was said and done, and how it was scored. */
export function episodeText(episode: Trajectory, output: Output): string {
  const parts = conversationLines(episode.messages, episode.steps, output);
  const silent = episode.steps.filter(({ message }) => message === null).flatMap((step) => callLines(step, output));
  const roles = Object.entries(episode.roles ?? {}).flatMap(([name, role]) => [
    roleText(name, role, output),
    ...conversationLines(
      role.messages,
      episode.steps.filter((step) => step.role === name),
      output,
    ),
  ]);
  return `${[headText(episode, output), ...parts, ...silent, ...roles, endText(episode, output)].join("\n\n")}\n`;
}

function conversationLines(messages: readonly ChatMessage[], steps: readonly Step[], output: Output): string[] {
  const byCall = new Map(steps.map((step) => [step.call.id, step]));
  return messages.flatMap((message) => messageLines(message, byCall, output));
}

/** A role, who played it, and how the episode ended for it. */
function roleText(name: string, { player, agent, model, outcome, forfeit }: TrajectoryRole, output: Output): string {
  const by = [plain(agent), ...(model === null ? [] : [plain(model)]), ...(player === name ? [] : [`the player of ${player}`])];
  return facts(
    [
      ["role", output.colors.bold(name)],
      ["played by", by.join(", ")],
      ["reward", outcome.kind === "scored" ? output.colors.bold(String(outcome.reward)) : null],
      ["unscored", outcome.kind === "scored" ? null : output.colors.red(`${outcome.cause}: ${plain(outcome.message)}`)],
      ["gave up", forfeit === undefined ? null : forfeit.replace("_", " ")],
    ],
    output,
  );
}

function headText({ id, task, seed, provenance, parent }: Trajectory, output: Output): string {
  return facts(
    [
      ["episode", output.colors.bold(plain(id))],
      ["task", task.id === null ? null : plain(task.id)],
      ["environment", plain(provenance.environment)],
      ["agent", plain(provenance.agent)],
      ["model", provenance.model === null ? null : plain(provenance.model)],
      ["seed", String(seed)],
      ["fork of", parent === null ? null : `${plain(parent.id)} after ${parent.steps} tool calls`],
    ],
    output,
  );
}

function messageLines(message: ChatMessage, steps: ReadonlyMap<string, Step>, output: Output): string[] {
  // The result of a call is shown with the call.
  if (message.role === "tool" && steps.has(message.tool_call_id ?? "")) return [];
  const { colors } = output;
  const reasoning = typeof message.reasoning_content === "string" ? [colors.dim(indented(plain(message.reasoning_content)))] : [];
  const text = plain(textOf(message));
  const said = [colors.cyan(message.role), ...reasoning, ...(text === "" ? [] : [indented(text)])];
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => {
    const step = steps.get(id);
    return step === undefined
      ? `${colors.yellow(plain(name))} ${plain(given)}  ${colors.dim("no result")}`
      : callLines(step, output).join("\n");
  });
  return [...(said.length > 1 || calls.length === 0 ? [said.join("\n")] : []), ...calls];
}

function callLines({ call, result, duration_ms: ms, reward }: Step, { colors }: Output): string[] {
  const arrow = result.is_error ? colors.red("✖") : colors.green("→");
  const step = reward === null ? "" : `  step reward ${reward}`;
  const head = `${colors.yellow(plain(call.name))} ${plain(JSON.stringify(call.arguments))}  ${colors.dim(`${Math.round(ms)} ms${step}`)}`;
  return [`${head}\n${arrow} ${indented(plain(result.content.map(blockText).join("\n"))).trimStart()}`];
}

function blockText(block: ContentBlock): string {
  return block.type === "text" && typeof block.text === "string" ? block.text : `[${block.type}]`;
}

function endText({ outcome, stop_reason: stop, usage, cost, timing }: Trajectory, output: Output): string {
  const { colors } = output;
  const scored = outcome.kind === "scored";
  const components = scored ? Object.entries(outcome.components) : [];
  return facts(
    [
      ["reward", scored ? colors.bold(String(outcome.reward)) : null],
      ...(components.length > 1 ? components.map(([name, value]) => [`  ${plain(name)}`, String(value)] as const) : []),
      ["unscored", scored ? null : colors.red(`${outcome.cause}, at ${outcome.stage}: ${plain(outcome.message)}`)],
      ["stopped", stop],
      ["tokens", usage.prompt_tokens === null ? null : `${usage.prompt_tokens} read, ${usage.completion_tokens ?? "?"} written`],
      ["cost", cost === null ? null : moneyText(cost)],
      ["time", `${(timing.total_ms / 1_000).toFixed(2)} s, the model ${(timing.model_ms / 1_000).toFixed(2)} s`],
    ],
    output,
  );
}

function indented(text: string): string {
  return text.replace(/^/gm, "  ");
}
