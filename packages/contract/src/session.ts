import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { roleName } from "./episode-roles.ts";
import { instanceModels } from "./model-endpoint.ts";
import { outcome } from "./outcome.ts";
import { environmentVariables, fieldLimits, knownFields, text } from "./request-fields.ts";
import { inlineTask } from "./task.ts";
import { contentBlock, toolDescriptor } from "./tool.ts";

/** Which task an episode plays: a listed one, by its id or by its position in its split, or one of the caller's own. */
export const taskChoice = z.union(
  [
    z.strictObject({ id: text(fieldLimits.nameLength).min(1) }),
    z.strictObject({ split: text(fieldLimits.nameLength), index: z.number().int().nonnegative() }),
    z.strictObject({ inline: inlineTask }),
  ],
  { error: "must be {id} or {split, index} of a task that the environment lists, or {inline}" },
);
export type TaskChoice = z.infer<typeof taskChoice>;

/** A task as trainers see it in lists and answers. Its hidden fields, such as the expected result, are not among it. */
export const listedTask = z.object({
  id: z.string(),
  split: z.string().nullable(),
  /** The position among the tasks of its split; null if the environment does not list the task. */
  index: z.number().int().nonnegative().nullable(),
  /** The task's instruction; null if it has none. */
  prompt: z.string().nullable(),
});
export type ListedTask = z.infer<typeof listedTask>;

/** The answer of `GET /environments/:env/tasks`. */
export const listedTasks = z.object({
  tasks: z.array(listedTask),
  /** The value of `after` for the next page; null at the end. */
  next: z.string().nullable(),
});
export type ListedTasks = z.infer<typeof listedTasks>;

/** How long a session may be idle, in seconds. */
export const sessionTtl = { default: 1_800, max: 86_400 } as const;

/** The body of `POST /sessions`. */
export const createSessionRequest = knownFields({
  environment: text(fieldLimits.referenceLength).min(1),
  task: taskChoice.nullish(),
  seed: z.number().int().nullish(),
  /** The session ends when it has been idle for this long. */
  ttl_seconds: z.number().int().min(1).max(sessionTtl.max).default(sessionTtl.default),
  /** Variables of the environment. */
  variables: environmentVariables.optional(),
  /** The models that the environment's code calls, by name, instead of those that it declares. */
  models: instanceModels.optional(),
});
export type CreateSessionRequest = z.infer<typeof createSessionRequest>;

/** What one role begins with, in an environment with roles. */
export const sessionRole = z.object({ observation: z.string(), messages: z.array(chatMessage), tools: z.array(toolDescriptor) });

/** The answer of `POST /sessions`. With roles, observation and messages are empty, and the tools are those of all roles. */
export const sessionStart = z.object({
  session: z.string(),
  /** `name@version`. */
  environment: z.string(),
  /** The text of the messages, without those of the system. */
  observation: z.string(),
  messages: z.array(chatMessage),
  tools: z.array(toolDescriptor),
  /** Null if the environment has no tasks. */
  task: listedTask.nullable(),
  seed: z.number().int(),
  /** What each role begins with; absent in an environment without roles. */
  roles: z.record(roleName, sessionRole).optional(),
  /** The roles that may act now; absent in an environment without roles. */
  turn: z.array(roleName).optional(),
});
export type SessionStart = z.infer<typeof sessionStart>;

/** The role that acts. An environment with roles requires it, others refuse it. */
const actingRole = roleName.optional();

/** The body of `POST /sessions/:id/step`: a tool call, or words of the agent. */
export const sessionAction = z.union([
  knownFields({
    role: actingRole,
    tool: knownFields({ name: text(fieldLimits.nameLength).min(1), arguments: z.record(z.string(), z.unknown()).default({}) }),
  }),
  knownFields({ role: actingRole, text: z.string() }),
]);
export type SessionAction = z.infer<typeof sessionAction>;

/** The answer of `POST /sessions/:id/step`. */
export const sessionStep = z.object({
  /** What the agent reads. */
  observation: z.string(),
  content: z.array(contentBlock),
  /** The tool's result as a value, if it has one. */
  structured_content: z.unknown().optional(),
  /** True if the tool failed, which is for the agent to read. */
  is_error: z.boolean(),
  done: z.boolean(),
  /** The reward of this step; null if the environment gives none. */
  reward: z.number().nullable(),
  /** The roles that may act now; absent in an environment without roles, as the next two. */
  turn: z.array(roleName).optional(),
  /** What this step brought each role; null if the environment gives no step rewards. */
  rewards: z.record(roleName, z.number().nullable()).optional(),
  /** What roles whose turn it is now see, of those that have not been told since another role acted. */
  observations: z.record(roleName, z.string()).optional(),
});
export type SessionStep = z.infer<typeof sessionStep>;

/** The body of `POST /sessions/:id/score`. */
export const scoreSessionRequest = knownFields({
  /** The agent's last words, if it has not said them yet. */
  text: z.string().optional(),
  /** Arguments of the reward. They are the trainer's: an agent could raise its own score with them. */
  arguments: z.record(z.string(), z.unknown()).optional(),
});
export type ScoreSessionRequest = z.infer<typeof scoreSessionRequest>;

/** The answer of `POST /sessions/:id/score`. */
export const sessionScore = z.object({
  outcome,
  /** How it ended for each role; absent in an environment without roles. */
  roles: z.record(roleName, z.object({ outcome })).optional(),
});
export type SessionScore = z.infer<typeof sessionScore>;
