import * as z from "zod";
import { text } from "./request-fields.ts";
import { toolDescriptor } from "./tool.ts";

/** How deep environments may use each other. */
export const MAX_CHILD_DEPTH = 8;
/** Instances of one tree, the root included. */
export const MAX_TREE_INSTANCES = 64;
/** Longer names of tools are refused by models. */
export const MAX_REEXPORTED_NAME = 64;

export const childName = z
  .string()
  .max(32)
  .regex(/^[a-z][a-z0-9-]*$/, "must be lower-case letters, digits and '-', and begin with a letter");

/** One entry of `deployConfig.uses`: an environment of which each episode has an instance of its own. */
export const childUse = z.strictObject({
  /** What the environment's code calls it. */
  name: childName,
  /** `name`, `name@1.0.0` or `name@^1`. A range is resolved when the environment is published. */
  env: z.string().min(1).max(400),
  variables: z.record(z.string(), z.string()).optional(),
  /** `none`, `same` for the task of the parent, or the id of a task of the child. */
  task: z.string().min(1).max(256).optional(),
  /** `start`: before `setup` of each episode. `demand`: at the first call. */
  when: z.enum(["start", "demand"]).optional(),
  /** Tools of the child that the agent of the parent gets as `<child>__<tool>`; `*` for all. */
  reexport: z.array(z.string().min(1).max(128)).max(256).optional(),
});
export type ChildUse = z.infer<typeof childUse>;

export const childUses = z
  .array(childUse)
  .max(MAX_TREE_INSTANCES - 1)
  .superRefine((uses, context) => {
    const seen = new Set<string>();
    for (const [at, { name }] of uses.entries()) {
      if (seen.has(name))
        context.addIssue({ code: "custom", message: `'${name}' is used twice; names must be unique`, path: [at, "name"] });
      seen.add(name);
    }
  });

/** The children of an episode at all levels, as the provenance of a trajectory has them. Those that no call has opened are missing. */
export const episodeChildren = z
  .array(
    z.object({
      /** The names below the root: `shop/user`. */
      path: z.string().max(512),
      environment: z.string().max(512),
      /** The digest of the published content; empty without a platform. */
      digest: z.string().max(128),
      seed: z.number().int(),
      /** Null also for a task that is not listed. */
      task: z.string().max(256).nullable(),
    }),
  )
  .max(MAX_TREE_INSTANCES);
export type EpisodeChild = z.infer<typeof episodeChildren>[number];

/** What the platform tells an instance about one of its children. */
export const childGrant = z.strictObject({
  name: childName,
  task: z.string(),
  when: z.enum(["start", "demand"]),
  /** The tools that are re-exported, as the child describes them. */
  reexport: z.array(toolDescriptor),
});
export type ChildGrant = z.infer<typeof childGrant>;

/** A child as a part of its parent's snapshot. */
export const childState = z.object({
  /** The id of its task, or a task that is not listed. */
  task: z.union([z.string(), z.record(z.string(), z.unknown())]).nullable(),
  seed: z.number().int(),
  snapshot: z.unknown(),
});
export type ChildState = z.infer<typeof childState>;

/** The answer to `/child/open`. */
export const openedChild = z.object({ id: z.string(), environment: z.string(), digest: z.string() });
export type OpenedChild = z.infer<typeof openedChild>;

export const childMethod = z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]);

/** A path of the agent API or the trainer API of a child. */
export const childPath = text(4_096);

/** The name under which the agent of the parent gets a tool of a child. */
export function reexportedName(child: string, tool: string): string {
  return `${child}__${tool}`;
}

/** The tools of a child that its parent re-exports. */
export function isReexported({ reexport = [] }: Pick<ChildUse, "reexport">, tool: string): boolean {
  return reexport.includes("*") || reexport.includes(tool);
}
