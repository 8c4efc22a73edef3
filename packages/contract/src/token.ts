import * as z from "zod";

/** What the holder of a token may do. */
export const roles = ["admin", "publisher", "trainer", "agent"] as const;
export type Role = (typeof roles)[number];

/** A token without its secret. */
export const tokenRecord = z.looseObject({
  id: z.string(),
  owner: z.string(),
  /** The original's name for the owner. */
  user: z.string().optional(),
  roles: z.array(z.enum(roles)),
  note: z.string(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  lastUsedAt: z.string().nullable(),
  /** Limit of the owner's live instances; null for the server's default. */
  maxInstanceCount: z.int().nullable(),
  /** The environments that the token is valid for; all if empty. */
  scopes: z.array(z.string()),
});
export type TokenRecord = z.infer<typeof tokenRecord>;

/** The answer to the creation of a token, the only one that has the secret. */
export const newTokenRecord = tokenRecord.extend({ token: z.string() });
export type NewTokenRecord = z.infer<typeof newTokenRecord>;

export const identity = z.looseObject({
  owner: z.string(),
  roles: z.array(z.enum(roles)),
  /** The id of the token; null if the server requires none. */
  token: z.string().nullable(),
});
export type Identity = z.infer<typeof identity>;
