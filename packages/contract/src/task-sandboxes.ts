import * as z from "zod";
import { egressPolicy } from "./egress.ts";

/** The name of the sandbox that an environment's code gets as `sandbox`: the second container, or the first one that it opens. */
export const TASK_SANDBOX = "task";

const quantity = z.string().regex(/^\d+(?:\.\d+)?(?:m|C|[kKMGTPE]i?)?$/, 'must be a quantity such as "1", "500m" or "2Gi"');
const image = z
  .string()
  .max(512)
  .regex(/^[\w.:/@*-]+$/, 'must be the name of an image, or the beginning of one and "*", such as "registry.example.com/team/*"');

/** The size of `/dev/shm`. */
export const shmMb = z.number().int().min(1).max(1_048_576);

/** A program that fills `/dev/shm` must not be ended for want of memory. Null if it fits into the memory of the sandbox. */
export function shmProblem(shmMb: number, memoryMb: number | undefined): string | null {
  if (memoryMb === undefined || shmMb < memoryMb) return null;
  return `is ${shmMb}, and its sandboxes have ${memoryMb} MiB of memory, of which /dev/shm is a part; choose less, or more 'memory' beside it`;
}

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
  /** Limits of each sandbox. */
  memory: quantity.optional(),
  cpu: quantity.optional(),
  disk: quantity.optional(),
  /** The size of their `/dev/shm` in MiB, which counts as their memory; 64 if absent. */
  shmMb: shmMb.optional(),
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

const POWERS = ["", "k", "m", "g", "t", "p", "e"];

/** MiB of a quantity such as `2Gi` or `500M`; null for one that is no amount of memory, such as `500m` or `1C`, or less than one. */
export function mebibytesOf(text: string): number | null {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)([kKMGTPE]?i?)$/.exec(text) ?? [];
  if (number === undefined) return null;
  const base = unit.endsWith("i") ? 1_024 : 1_000;
  const bytes = Number(number) * base ** POWERS.indexOf(unit.replace("i", "").toLowerCase());
  const mebibytes = Math.floor(bytes / 1_024 ** 2);
  return mebibytes < 1 ? null : mebibytes;
}

/** Processors of a quantity such as `2`, `500m` or `1C`; null for one that is no number of processors. */
export function cpusOf(text: string): number | null {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(m|C)?$/.exec(text) ?? [];
  if (number === undefined || Number(number) === 0) return null;
  return unit === "m" ? Number(number) / 1_000 : Number(number);
}

/** What the platform tells an instance about the sandboxes that its code may open. */
export const sandboxGrant = z.strictObject({
  /** It has a second container, which is opened before `setup` of every episode. */
  second: z.boolean(),
  /** The sandboxes of a fork's parent, which the fork continues with copies of. */
  copies: z.array(z.strictObject({ name: z.string(), env: z.record(z.string(), z.string()), snapshot: z.string() })).optional(),
});
export type SandboxGrant = z.infer<typeof sandboxGrant>;
