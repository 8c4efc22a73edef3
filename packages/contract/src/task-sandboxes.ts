import * as z from "zod";
import { egressPolicy } from "./egress.ts";
import { taskLimits } from "./resources.ts";

/** The name of the sandbox that an environment's code gets as `sandbox`: the second container, or the first one that it opens. */
export const TASK_SANDBOX = "task";

const image = z
  .string()
  .max(512)
  .regex(/^[\w.:/@*-]+$/, 'must be the name of an image, or the beginning of one and "*", such as "registry.example.com/team/*"');

/**
 * What root of a sandbox may do. `minimal`: own and change any file, change users, end processes, listen on any port. `docker`: what Docker allows
 * by default, with `chroot`, and programs that change the user, such as sudo.
 */
export const capabilitySet = z.enum(["minimal", "docker"]);
export type CapabilitySet = z.infer<typeof capabilitySet>;

/** `deployConfig.taskSandboxes`: the sandboxes that the environment's own code may open. */
export const taskSandboxConfig = z.looseObject({
  /** Images that it may open; `*` stands for any characters. */
  images: z.array(image).max(256).optional(),
  /** How many one instance may have at a time. */
  atOnce: z.number().int().min(1).max(1_000).optional(),
  ...taskLimits,
  /** What root of each may do; `minimal` if absent. */
  capabilities: capabilitySet.optional(),
  /** Where programs in them may connect to; by default the environment's `egress`. */
  egress: egressPolicy.optional(),
});

/** Whether a template of the original has a second container. Clients write it in any case. */
export function isDualContainer(deployConfig: { readonly podTemplate?: unknown; readonly templateType?: unknown } | undefined): boolean {
  return [deployConfig?.podTemplate, deployConfig?.templateType].some(
    (name) => typeof name === "string" && name.toLowerCase().replace(/[-_]/g, "") === "dualcontainer",
  );
}

/** What the platform tells an instance about the sandboxes that its code may open. */
export const sandboxGrant = z.strictObject({
  /** It has a second container, which is opened before `setup` of every episode. */
  second: z.boolean(),
  /** The sandboxes of a fork's parent, which the fork continues with copies of. */
  copies: z.array(z.strictObject({ name: z.string(), env: z.record(z.string(), z.string()), snapshot: z.string() })).optional(),
});
export type SandboxGrant = z.infer<typeof sandboxGrant>;
