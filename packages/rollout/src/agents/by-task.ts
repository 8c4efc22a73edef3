import { type ChatMessage, type OracleAction, oracleAction, type Trajectory } from "@aenv/contract";
import * as z from "zod";
import { digestOf } from "../journal/digest.ts";
import type { TurnAgent } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";
import { seedOfRole } from "../player/players.ts";
import { replayAgent } from "./replay.ts";
import { scriptedAgent } from "./scripted.ts";

/** The same actions for every task, or those of each task by its id. */
export const scriptedActions = z.union([z.array(oracleAction), z.record(z.string(), z.array(oracleAction))]);
export type ScriptedActions = z.infer<typeof scriptedActions>;

export function scriptedByTask(actions: ScriptedActions): TurnAgent {
  if (Array.isArray(actions)) return scriptedAgent(actions);
  const byTask = new Map<string | null, readonly OracleAction[]>(Object.entries(actions));
  return {
    name: "scripted",
    settings: { actions },
    begin: (start) => scriptedAgent(found(byTask, start.task.id, "the file of the agent 'scripted' has no actions")).begin(start),
  };
}

/** A run whose episodes are played again. */
export interface RecordedRun {
  readonly name: string;
  trajectories(): AsyncIterable<Trajectory>;
}

/**
 * Does what the agent of a run did: in an episode with the same task and seed the same, and with another seed what it did in the
 * first scored episode of the task. Only what the agent wrote is kept in memory.
 */
export async function replayOfRun(run: RecordedRun, named: string): Promise<TurnAgent> {
  const byTask = new Map<string | null, Written>();
  const bySeed = new Map<string, Written>();
  for await (const trajectory of run.trajectories()) {
    if (trajectory.outcome.kind === "unscored") continue;
    const { task, seed } = trajectory;
    const written = writtenIn(trajectory);
    bySeed.set(keyOf(task.id, seed), written);
    for (const role of written.ofRoles.keys()) bySeed.set(keyOf(task.id, seedOfRole(seed, role)), written);
    if (!byTask.has(task.id)) byTask.set(task.id, written);
  }
  return {
    name: "replay",
    // The digest tells a run from another one that has its name later.
    settings: { run: named, trajectories: digestOf([...bySeed.values()].map(contentOf)) },
    begin: (start) => {
      const { id } = start.task;
      const written = bySeed.get(keyOf(id, start.seed)) ?? found(byTask, id, `run '${run.name}' has no scored episode`);
      return replayAgent(written.ofRoles.get(start.role ?? "") ?? written).begin(start);
    },
  };
}

type WrittenByOne = Pick<Trajectory, "id" | "messages" | "steps">;

interface Written extends WrittenByOne {
  /** What the agent of each role wrote, if the environment has roles. */
  readonly ofRoles: ReadonlyMap<string, WrittenByOne>;
}

/** The positions of the messages count, and of all but the agent's nothing else does. The steps are those of a program. */
function writtenIn({ id, messages, steps, roles = {} }: Trajectory): Written {
  const isProgram = steps.some(({ message }) => message === null);
  const ofAgent = (all: readonly ChatMessage[]) => all.map((one) => (one.role === "assistant" ? one : { role: one.role, content: "" }));
  return {
    id,
    messages: ofAgent(messages),
    ofRoles: new Map(Object.entries(roles).map(([role, own]) => [role, { id, messages: ofAgent(own.messages), steps: [] }])),
    steps: isProgram ? steps.map((step) => ({ ...step, result: { content: [], is_error: false } })) : [],
  };
}

function contentOf({ id, messages, steps, ofRoles }: Written): unknown {
  const ofOthers = [...ofRoles].map(([role, own]) => [role, own.messages]);
  return [id, messages, steps.map(({ call }) => call), ...(ofOthers.length > 0 ? [ofOthers] : [])];
}

function keyOf(task: string | null, seed: number): string {
  return JSON.stringify([task, seed]);
}

function found<T>(byTask: ReadonlyMap<string | null, T>, task: string | null, lack: string): T {
  const one = byTask.get(task);
  if (one !== undefined) return one;
  throw new AgentError(`${lack} of ${task === null ? "an episode without a task" : `task '${task}'`}`);
}
