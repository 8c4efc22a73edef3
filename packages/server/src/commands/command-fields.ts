import { z } from "zod";

/** The fields of a command, as clients send them. */
export const commandFields = {
  command: z
    .union([z.string().min(1), z.array(z.string()).min(1)])
    .describe("a text is run by `sh -c`, a list is a program and its arguments"),
  cwd: z.string().optional().describe("the working directory; a relative path begins at the sandbox's own"),
  env: z
    .record(z.string().regex(/^[^=\0]+$/), z.string())
    .optional()
    .describe("variables in addition to those of the sandbox"),
  user: z.string().optional().describe("name or number, also name:group"),
  timeout_ms: z.int().min(1).optional().describe("the command is ended after this time"),
};
