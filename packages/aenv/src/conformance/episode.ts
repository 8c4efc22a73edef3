import { digestAnswer, type OracleAction, oracleAnswer, problemsOf, type ResetResult, resetResult, type Task } from "@aenv/contract";
import type { z } from "zod";
import type { Subject } from "./check.ts";
import { Violation } from "./violation.ts";
import { cut, type Wire } from "./wire.ts";

export const SEED = 7;

/** Begins an episode; what it answers is checked. */
export async function reset(wire: Wire, task: Task | null, seed = SEED): Promise<ResetResult> {
  const answer = parsed(
    resetResult,
    await wire.ask("POST", "/task/reset", { ...(task !== null && { task: task.id }), seed }),
    "POST /task/reset",
  );
  if (task !== null && answer.task?.id !== task.id)
    throw new Violation(
      `POST /task/reset must answer with the task '${task.id}' that it has begun; it was ${cut(JSON.stringify(answer.task))}`,
    );
  if (answer.seed !== seed)
    throw new Violation(`POST /task/reset must answer with the seed ${seed} that it was given; it was ${answer.seed}`);
  return answer;
}

export async function digestOf({ wire, abilities }: Pick<Subject, "wire" | "abilities">): Promise<string | null> {
  if (abilities?.digest !== true) return null;
  const { digest } = parsed(digestAnswer, await wire.ask("GET", "/state/digest"), "GET /state/digest");
  if (digest === "") throw new Violation("GET /state/digest must answer with a digest that is not empty");
  return digest;
}

/** The actions that solve the task; null if the environment does not know them. */
export async function oracleOf({ wire, abilities }: Subject): Promise<readonly OracleAction[] | null> {
  if (abilities?.oracle !== true) return null;
  return parsed(oracleAnswer, await wire.ask("GET", wire.ofRole("/episode/oracle")), "GET /episode/oracle").actions;
}

/** A tool call or words, as an agent makes them. */
export async function act(subject: Subject, action: OracleAction): Promise<void> {
  const { wire } = subject;
  if ("say" in action) {
    await wire.ask("POST", "/episode/reply", wire.withRole({ message: { role: "assistant", content: action.say } }));
    return;
  }
  const result = await wire.rpc("tools/call", { name: action.tool, arguments: action.arguments });
  if (!Array.isArray(result.content))
    throw new Violation(`the result of the tool ${action.tool} must have 'content'; it was ${cut(JSON.stringify(result))}`);
}

export function parsed<S extends z.ZodType>(schema: S, value: unknown, what: string): z.infer<S> {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  throw new Violation(`${what} was answered with ${cut(JSON.stringify(value) ?? "nothing")}: ${problemsOf(found.error, "the data")}`);
}
