import * as z from "zod";

export const secretName = z
  .string()
  .regex(/^[a-z0-9_][a-z0-9_.-]{0,127}$/i, 'must be the name of a secret: letters, digits, "_", "-" and "."');

/** Variables and the names of the secrets that they get. */
export const secretNames = z.record(z.string().min(1).max(256), secretName);
