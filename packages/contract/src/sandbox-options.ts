import * as z from "zod";

const MAX_MOUNT_POINTS = 64;
const MAX_MOUNT_POINTS_CHARACTERS = 16_384;
const MAX_INIT_COMMAND_CHARACTERS = 8_192;

/**
 * Storages to mount in the sandbox, as the original's newer clients request them: `{"id": "OSS_1", "remote_dir": "/data",
 * "local_dir": "/workspace"}`. The content of an entry is passed to the engine as it is.
 */
export const mountPoints = z
  .array(z.record(z.string(), z.unknown()))
  .max(MAX_MOUNT_POINTS)
  .refine((entries) => JSON.stringify(entries).length <= MAX_MOUNT_POINTS_CHARACTERS, {
    message: `must have at most ${MAX_MOUNT_POINTS_CHARACTERS} characters as JSON`,
  });

/** The command to start the sandbox with, instead of its image's. */
export const initCommand = z
  .string()
  .max(MAX_INIT_COMMAND_CHARACTERS)
  .refine((command) => !command.includes("\0"), { message: "must not contain a NUL byte" });

/** Options for the sandbox from a request or an environment. An engine without support ignores them, with a warning. */
export interface SandboxOptions {
  readonly mountPoints?: readonly Readonly<Record<string, unknown>>[];
  readonly initCommand?: string;
}
