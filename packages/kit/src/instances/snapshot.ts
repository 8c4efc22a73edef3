import { isObject, messageOf, PlatformError, problemsOf } from "@aenv/contract";
import { DevalueError, parse, stringify } from "devalue";
import type { StoredConversations } from "../agent/stored.ts";
import type { StoredChildren } from "../children/episode-children.ts";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { EnvironmentDefinition, PathStep, SetupContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { StoredRecording } from "../models/recording.ts";
import { type TurnRecord, turnRecord } from "../roles/turn-order.ts";

/** A serialized state: JSON from which another process of the same environment can continue. */
export interface Snapshot {
  readonly environment: string;
  /** `graph`: plain data, encoded by devalue; `custom`: the result of the environment's own `snapshot`. */
  readonly format: "graph" | "custom";
  readonly data: unknown;
  /** Set if the episode's tools return observations only. */
  readonly observations_only?: boolean;
  /** What the agent has done, if a reward wants that. */
  readonly path?: readonly PathStep[];
  /** The calls of models so far, and the recorded answers that are left. */
  readonly recording?: StoredRecording;
  /** The conversations with the environment's agent; without an agent, the tasks of calls over A2A. */
  readonly agent?: StoredConversations;
  /** The children of its episode, by their names. */
  readonly children?: StoredChildren;
  /** What has happened in the turns of its roles and is not in the state; absent without roles. */
  readonly turns?: TurnRecord;
}

/** Serializes a state; maps, sets, dates, cycles and shared references are kept. */
export async function writeSnapshot(definition: EnvironmentDefinition, state: unknown, environment: string): Promise<Snapshot> {
  if (definition.snapshot !== undefined) {
    const data: unknown = await definition.snapshot(state);
    return { environment, format: "custom", data: jsonOrThrow("snapshot.unsupported", data, "the result of snapshot") };
  }
  try {
    return { environment, format: "graph", data: stringify(state) };
  } catch (error) {
    const where = error instanceof DevalueError ? `state${error.path}` : "state";
    throw new PlatformError(
      "snapshot.unsupported",
      `${where} is not plain data (${messageOf(error)}): keep functions and class instances out of the state, or define snapshot and restore`,
      { cause: error },
    );
  }
}

export async function readSnapshot(
  definition: EnvironmentDefinition,
  snapshot: unknown,
  environment: string,
  context: SetupContext,
): Promise<unknown> {
  if (!isObject(snapshot) || typeof snapshot.environment !== "string")
    throw damaged("it is not a snapshot that state/snapshot has returned");
  if (snapshot.environment !== environment) throw damaged(`it is of environment '${snapshot.environment}', but this is '${environment}'`);
  if (snapshot.format === "custom") {
    if (definition.restore === undefined) throw damaged("it needs 'restore', which the environment does not define");
    return await definition.restore(snapshot.data, context);
  }
  if (snapshot.format !== "graph" || typeof snapshot.data !== "string") throw damaged(`its format '${String(snapshot.format)}' is unknown`);
  try {
    return parse(snapshot.data);
  } catch (error) {
    throw damaged(error instanceof RangeError ? "its data is nested too deeply" : messageOf(error));
  }
}

/** What a snapshot has about the turns of roles; null without roles. */
export function readTurns({ roles }: CompiledEnvironment, snapshot: unknown): TurnRecord | null {
  if (roles === null || !isObject(snapshot)) return null;
  const parsed = turnRecord.safeParse(snapshot.turns);
  if (!parsed.success) throw damaged(`its turns are invalid: ${problemsOf(parsed.error, "turns")}`);
  const { waiting, invalid_moves, out, spent_ms } = parsed.data;
  const unknown = [waiting, invalid_moves, out, spent_ms].flatMap(Object.keys).find((role) => !roles.names.includes(role));
  if (unknown !== undefined) throw damaged(`its turns name the role '${unknown}', which the environment does not have`);
  return parsed.data;
}

function damaged(why: string): PlatformError {
  return new PlatformError("snapshot.invalid", `this snapshot cannot be restored: ${why}`);
}
