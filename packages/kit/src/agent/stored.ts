import { isObject, messageOf, PlatformError } from "@aenv/contract";
import { DevalueError, parse, stringify } from "devalue";
import * as z from "zod";
import { taskStates } from "./task.ts";

/** Conversations in a snapshot. The times of the tasks are apart: equal episodes differ in them. */
export interface StoredConversations {
  /** Encoded by devalue. */
  readonly data: string;
  readonly times: readonly number[];
}

const json = z.unknown().refine((value) => value !== undefined);
const metadata = z.record(z.string(), z.unknown()).optional();
const partInfo = { mediaType: z.string().optional(), filename: z.string().optional(), metadata };
const part = z.union([
  z.strictObject({ text: z.string(), ...partInfo }),
  z.strictObject({ raw: z.string(), ...partInfo }),
  z.strictObject({ url: z.string(), ...partInfo }),
  z.strictObject({ data: json, ...partInfo }),
]);
const message = z.strictObject({
  messageId: z.string(),
  role: z.enum(["user", "agent"]),
  parts: z.array(part),
  contextId: z.string(),
  taskId: z.string().optional(),
  metadata,
  extensions: z.array(z.string()).optional(),
  referenceTaskIds: z.array(z.string()).optional(),
});
const artifact = z.strictObject({
  artifactId: z.string(),
  name: z.string().optional(),
  description: z.string().optional(),
  parts: z.array(part),
  metadata,
});
const conversationData = z.strictObject({
  counters: z.strictObject({ context: z.int(), task: z.int(), message: z.int(), order: z.int() }),
  /** The context's id and its memory; only agents have memories. */
  memories: z.array(z.tuple([z.string(), z.unknown()])),
  tasks: z.array(
    z.strictObject({
      id: z.string(),
      contextId: z.string(),
      state: z.enum(taskStates),
      message: message.nullable(),
      order: z.int(),
      artifacts: z.array(artifact),
      history: z.array(message),
    }),
  ),
  modelFailure: z.string().nullable(),
});
const stored = z.strictObject({ data: z.string(), times: z.array(z.number()) });

/** The conversations of an episode as data. */
export type ConversationData = z.infer<typeof conversationData>;

export function storeConversations(data: ConversationData, times: readonly number[]): StoredConversations {
  try {
    return { data: stringify(data), times };
  } catch (error) {
    const where = error instanceof DevalueError ? error.path : "";
    throw new PlatformError(
      "snapshot.unsupported",
      `the agent's memory is not plain data (${messageOf(error)} at ${where}): keep functions and class instances out of it`,
      { cause: error },
    );
  }
}

/** The conversations in a snapshot; null if it has none. */
export function readConversations(snapshot: unknown): { readonly data: ConversationData; readonly times: readonly number[] } | null {
  if (!isObject(snapshot) || snapshot.agent === undefined) return null;
  try {
    const { data, times } = stored.parse(snapshot.agent);
    return { data: conversationData.parse(parse(data)), times };
  } catch (error) {
    throw new PlatformError("snapshot.invalid", `this snapshot cannot be restored: its conversations are damaged (${messageOf(error)})`, {
      cause: error,
    });
  }
}
