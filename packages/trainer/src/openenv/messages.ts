import { isObject, type Json, parseBoundedJson } from "@aenv/contract";
import * as z from "zod";

/** One entry of a validation error, as OpenEnv's clients read it. */
export interface Problem {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
}

/** A request that does not fit the protocol. */
export class InvalidMessage extends Error {
  override readonly name = "InvalidMessage";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join(".")}: ${msg}`)).join("; "));
    this.problems = problems;
  }
}

/** A client's message; undefined if it is not JSON, or nested too deeply. */
export function tryMessage(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}

/** Data of a reset. The environment chooses what is left out; other keys are ignored, as columns of a dataset may be among them. */
const resetData = z.looseObject({
  seed: z.number().int().nonnegative().nullish(),
  episode_id: z.string().max(255).nullish(),
  /** The id of a task, or a task of the trainer's own. */
  task: z.union([z.string(), z.record(z.string(), z.unknown() as z.ZodType<Json>)]).nullish(),
  task_id: z.string().nullish(),
  split: z.string().nullish(),
  index: z.number().int().nonnegative().nullish(),
  max_steps: z.number().int().positive().nullish(),
  /** Arguments of the reward when the episode is scored. */
  reward_args: z.record(z.string(), z.unknown()).nullish(),
});
export type ResetData = z.infer<typeof resetData>;

const args = z.record(z.string(), z.unknown());
const metadata = args.optional();
const listTools = z.strictObject({ type: z.literal("list_tools"), metadata });
const submit = z.strictObject({ type: z.literal("submit"), answer: z.string().nullish(), metadata });
/** `parameters` is the name in OpenEnv's RFC, `arguments` that of its code. */
const callTool = z.strictObject({
  type: z.literal("call_tool").default("call_tool"),
  tool_name: z.string(),
  arguments: args.optional(),
  parameters: args.optional(),
  metadata,
});

export type Action =
  | { readonly type: "list_tools" }
  | { readonly type: "call_tool"; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

/** The tool that ends an episode. */
export const SUBMIT = "submit";
/** The tool by which an agent speaks, in environments that answer it. */
export const SAY = "say";

export function parseReset(value: unknown): ResetData {
  return parse(resetData, value ?? {});
}

export function parseAction(value: unknown): Action {
  if (!isObject(value)) throw new InvalidMessage([{ type: "dict_type", loc: [], msg: "an action must be an object", input: value }]);
  if (value.type === "list_tools") return { type: parse(listTools, value).type };
  if (value.type === "submit") {
    const { answer } = parse(submit, value);
    return { type: "call_tool", name: SUBMIT, arguments: answer == null ? {} : { answer } };
  }
  const { tool_name: name, arguments: given, parameters } = parse(callTool, value);
  return { type: "call_tool", name, arguments: given ?? parameters ?? {} };
}

export function parse<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidMessage(
    parsed.error.issues.map(({ code, path, message }) => {
      const loc = path.map((one) => (typeof one === "symbol" ? String(one) : one));
      return { type: code ?? "invalid", loc, msg: message, input: inputAt(value, loc) };
    }),
  );
}

/** The offending value, unless it is too long to be sent back. */
function inputAt(value: unknown, loc: readonly (string | number)[]): unknown {
  const found = loc.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? (at as Record<string | number, unknown>)[key] : undefined),
    value,
  );
  return found === undefined || (JSON.stringify(found) ?? "").length > 200 ? null : found;
}
