import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf, problemsOf } from "@aenv/contract";
import { type ScriptedActions, scriptedActions } from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";

const EXAMPLE = '[{ "tool": "echo", "arguments": { "text": "hello" } }, { "say": "Done." }]';

/** The actions of the agent `scripted`. */
export function readActions(file: string, cwd: string): ScriptedActions {
  const hint = `Write actions for all tasks, or an object with those of each task: ${EXAMPLE}`;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(resolve(cwd, file), "utf8"));
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${messageOf(error)}`, { exit: "usage", hint });
  }
  const parsed = scriptedActions.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Failure(`${file} holds no actions: ${problemsOf(parsed.error, "the file")}`, { exit: "usage", hint });
}
