import * as z from "zod";

const MAX_MOUNT_POINTS = 64;
const MAX_MOUNT_POINTS_CHARACTERS = 16_384;
const MAX_INIT_COMMAND_CHARACTERS = 8_192;

/**
 * Storages that are to appear in the sandbox, as the original's newer clients ask for them: `{"id": "OSS_1", "remote_dir": "/data",
 * "local_dir": "/workspace"}`. What stands in an entry is between the caller and the engine.
 */
export const mountPoints = z
  .array(z.record(z.string(), z.unknown()))
  .max(MAX_MOUNT_POINTS)
  .refine((entries) => JSON.stringify(entries).length <= MAX_MOUNT_POINTS_CHARACTERS, {
    message: `must have at most ${MAX_MOUNT_POINTS_CHARACTERS} characters as JSON`,
  });

/** The command that the sandbox is to start with, instead of its image's. */
export const initCommand = z
  .string()
  .max(MAX_INIT_COMMAND_CHARACTERS)
  .refine((command) => !command.includes("\0"), { message: "must not contain a NUL byte" });

/** What a request or an environment asks of the sandbox itself. An engine that cannot do it runs the instance without, with a warning. */
export interface SandboxOptions {
  readonly mountPoints?: readonly Readonly<Record<string, unknown>>[];
  readonly initCommand?: string;
}
