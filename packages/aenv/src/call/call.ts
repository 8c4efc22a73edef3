import { type ContentBlock, isObject, messageOf, nearestName, type ResetResult, type Task } from "@aenv/contract";
import { type Environment, ToolError, type ToolResult } from "@aenv/sdk";
import { catalogueTable, fetchCatalogue, fetchOffer } from "../project/catalogue.ts";
import { Failure } from "../terminal/failure.ts";
import type { Printer } from "../terminal/printer.ts";
import { facts, table, truncate } from "../terminal/table.ts";
import { parseArguments } from "./arguments.ts";

export interface CallOptions {
  readonly function?: boolean;
  readonly reward?: boolean;
  readonly health?: boolean;
  readonly list?: boolean;
  readonly tasks?: boolean;
  readonly reset?: boolean;
  readonly snapshot?: boolean;
  readonly args?: string;
  /** The role that calls the tool. */
  readonly role?: string;
}

/** Calls the environment, and returns a function that prints the answer. */
export type Call = (environment: Environment) => Promise<() => void>;

const kinds = ["function", "reward", "health", "list", "tasks", "reset", "snapshot"] as const;

/** The call that the options and arguments describe. */
export function chooseCall(words: readonly string[], options: CallOptions, printer: Printer): Call {
  const chosen = kinds.filter((name) => options[name]);
  if (chosen.length > 1) throw new Failure(`--${chosen[0]} and --${chosen[1]} exclude each other`, { exit: "usage" });
  const [kind = "tool"] = chosen;
  if (options.role !== undefined && kind !== "tool")
    throw new Failure(`--role is for calls of tools, not for --${kind}`, { exit: "usage" });
  switch (kind) {
    case "function":
    case "tool": {
      const [name, ...rest] = words;
      if (name === undefined || name.includes("=")) {
        throw new Failure(`the name of the ${kind} is missing; it comes first`, {
          exit: "usage",
          hint: "List them with: aenv call --list",
        });
      }
      const args = parseArguments(rest, options.args);
      if (kind === "tool")
        return callAndPrint(
          (environment) =>
            environment.callTool(name, args, withRole(options)).catch((error: unknown) => explainUnknownTool(error, name, environment)),
          (result) => printResult(result, printer),
        );
      return callAndPrint(
        (environment) => environment.callFunction(name, args),
        (value) => printValue(value, printer),
      );
    }
    case "list":
      assertNoArguments(kind, words, options);
      return callAndPrint(fetchCatalogue, (catalogue) =>
        printer.isJson ? printer.json(catalogue) : printer.print(catalogueTable(catalogue, printer.output)),
      );
    case "reward": {
      const args = parseArguments(words, options.args);
      return callAndPrint(
        (environment) => environment.callReward(args),
        (reward) => printValue(reward, printer),
      );
    }
    case "health": {
      const args = parseArguments(words, options.args);
      return callAndPrint(
        (environment) => environment.checkHealth(args),
        (health) => printHealth(health, printer),
      );
    }
    case "tasks": {
      const { split } = readArguments(words, options, ["split"]);
      const wanted = split === undefined ? {} : { split: String(split) };
      return callAndPrint(
        (environment) => environment.tasks(wanted),
        (tasks) => printTasks(tasks, printer),
      );
    }
    case "reset": {
      const episode = readEpisode(readArguments(words, options, ["task", "seed"]));
      return callAndPrint(
        (environment) => environment.reset(episode),
        (episode) => printReset(episode, printer),
      );
    }
    case "snapshot":
      assertNoArguments(kind, words, options);
      return callAndPrint(
        (environment) => environment.snapshot(),
        (snapshot) => printValue(snapshot, printer),
      );
  }
}

/** Throws the error; if the environment has no tool of this name, with the nearest that it has. */
async function explainUnknownTool(error: unknown, name: string, environment: Environment): Promise<never> {
  if (!(error instanceof ToolError) || error.code !== "tool.not_found") throw error;
  const { tools } = await fetchOffer(environment);
  const nearest = nearestName(
    name,
    tools.map((tool) => tool.name),
  );
  if (nearest === null) throw error;
  const hint = `Did you mean ${nearest}? List all with: aenv call --list`;
  throw new Failure(messageOf(error), { hint, code: "tool.not_found", cause: error });
}

function callAndPrint<T>(call: (environment: Environment) => Promise<T>, print: (answer: T) => void): Call {
  return async (environment) => {
    const answer = await call(environment);
    return () => print(answer);
  };
}

function assertNoArguments(kind: string, words: readonly string[], options: CallOptions): void {
  const [extra] = [...words, ...(options.args === undefined ? [] : ["--args"])];
  if (extra !== undefined) throw new Failure(`--${kind} takes no arguments, but '${extra}' was given`, { exit: "usage" });
}

function readArguments(words: readonly string[], options: CallOptions, known: readonly string[]): Record<string, unknown> {
  const args = parseArguments(words, options.args);
  for (const name of Object.keys(args)) {
    if (known.includes(name)) continue;
    const nearest = nearestName(name, known);
    throw new Failure(`'${name}' is not an argument here; the arguments are: ${known.join(", ")}`, {
      exit: "usage",
      hint: nearest === null ? undefined : `Did you mean ${nearest}?`,
    });
  }
  return args;
}

function withRole({ role }: CallOptions): { readonly role?: string } {
  return role === undefined ? {} : { role };
}

/** A task's id is a string, even if it looks like a number; null starts an episode without a task. */
function readEpisode({ task, seed }: Record<string, unknown>): { task?: string | null; seed?: number } {
  if (seed !== undefined && !Number.isSafeInteger(seed)) {
    throw new Failure(`the seed is ${JSON.stringify(seed)}; it must be a whole number`, { exit: "usage", hint: "Write it as: seed=7" });
  }
  return {
    ...(task !== undefined && { task: task === null ? null : String(task) }),
    ...(seed !== undefined && { seed: seed as number }),
  };
}

function printResult(result: ToolResult, printer: Printer): void {
  const { content, isError, structuredContent } = result;
  printer.json({ content, isError, ...(structuredContent !== undefined && { structuredContent }) });
  const text = content.map(blockText).join("\n");
  if (isError) throw printer.isJson ? new Failure([]) : new Failure(text || "the tool failed without a message", { code: "tool.failed" });
  if (!printer.isJson && text !== "") printer.print(text);
}

function printValue(value: unknown, printer: Printer): void {
  if (printer.isJson) printer.json(value ?? null);
  else printer.print(valueText(value));
}

function printHealth(health: Record<string, unknown>, printer: Printer): void {
  printValue(health, printer);
  const status = isObject(health.data) ? health.data.status : undefined;
  if (status !== "healthy" && status !== "success") throw new Failure([]);
}

function printTasks(tasks: readonly Task[], printer: Printer): void {
  printer.json(tasks);
  if (printer.isJson) return;
  printer.print(tasks.length === 0 ? "No tasks." : taskTable(tasks, printer));
}

function taskTable(tasks: readonly Task[], { output }: Printer): string {
  const rows = tasks.map(({ id, split, splits = [], instruction = "" }) => [
    output.colors.bold(id),
    [...new Set([...(split === undefined ? [] : [split]), ...splits])].join(", "),
    truncate(instruction, 70),
  ]);
  return table(["task", "split", "instruction"], rows, output);
}

function printReset(episode: ResetResult, printer: Printer): void {
  printer.json(episode);
  if (printer.isJson) return;
  const { task, seed, observation } = episode;
  printer.print(
    facts(
      [
        ["Task", task === null ? "none" : task.id],
        ["Seed", String(seed)],
      ],
      printer.output,
    ),
  );
  printer.print(`  ${printer.output.colors.dim("Observation")}`);
  printer.print(valueText(observation).replace(/^/gm, "  "));
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);
}

/** The text of a block; for other blocks, their type and size. */
function blockText(block: ContentBlock): string {
  if (typeof block.text === "string") return block.text;
  const size = typeof block.data === "string" ? `, ${Math.floor((block.data.length * 3) / 4)} bytes` : "";
  return `[${block.type}${typeof block.mimeType === "string" ? ` ${block.mimeType}` : ""}${size}]`;
}
