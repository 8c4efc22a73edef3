import * as z from "zod";

// Answers of the control port about commands and files in sandboxes.

/** How a command ended. */
export const commandEndingAnswer = z.object({
  exit_code: z.int().nullable().describe("null if a signal ended the command"),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
  out_of_memory: z.boolean(),
  interruption: z
    .string()
    .nullable()
    .describe("why processes of the sandbox were ended by something outside of it while the command ran, such as a machine without memory"),
  duration_ms: z.number(),
  dropped_bytes: z.int().describe("output that is missing, because it was more than the limit"),
});

export const commandResultAnswer = z.object({
  process: z.int(),
  ...commandEndingAnswer.shape,
  stdout: z.string(),
  stderr: z.string(),
});

export const listedCommandAnswer = z.object({
  process: z.int(),
  pid: z.int(),
  argv: z.array(z.string()),
  started_at: z.iso.datetime(),
  ended: commandEndingAnswer.nullable(),
});

export const fileAnswer = z.object({
  path: z.string(),
  type: z.enum(["file", "directory", "link", "other"]),
  size: z.int(),
  mode: z.string().describe("octal, such as 0644"),
  uid: z.int(),
  gid: z.int(),
  modified_at: z.iso.datetime(),
  target: z.string().optional().describe("where a link leads"),
});

export const fileListAnswer = z.object({ files: z.array(fileAnswer), truncated: z.boolean() });
