import { isObject, messageOf, PlatformError } from "@aenv/contract";
import { DevalueError, parse, stringify } from "devalue";
import type { EnvironmentDefinition, SetupContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";

/** A state written down: plain JSON that another process of the same environment can go on from. */
export interface Snapshot {
  readonly environment: string;
  /** `graph`: our encoding of plain data; `custom`: whatever the environment's own `snapshot` gave. */
  readonly format: "graph" | "custom";
  readonly data: unknown;
}

/** Writes a state down; maps, sets, dates, cycles and shared references are kept. */
export async function writeSnapshot(definition: EnvironmentDefinition, state: unknown, environment: string): Promise<Snapshot> {
  if (definition.snapshot !== undefined) {
    const data: unknown = await definition.snapshot(state);
    return { environment, format: "custom", data: jsonOrThrow("snapshot.unsupported", data, "what snapshot returned") };
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
  if (!isObject(snapshot) || typeof snapshot.environment !== "string") throw damaged("it is not an object that state/snapshot has given");
  if (snapshot.environment !== environment) throw damaged(`it is of '${snapshot.environment}', and this is '${environment}'`);
  if (snapshot.format === "custom") {
    if (definition.restore === undefined) throw damaged("it needs the environment's own 'restore', and there is none");
    return await definition.restore(snapshot.data, context);
  }
  if (snapshot.format !== "graph" || typeof snapshot.data !== "string") throw damaged(`its format '${String(snapshot.format)}' is unknown`);
  try {
    return parse(snapshot.data);
  } catch (error) {
    throw damaged(messageOf(error));
  }
}

function damaged(why: string): PlatformError {
  return new PlatformError("snapshot.invalid", `this snapshot cannot be restored: ${why}`);
}
