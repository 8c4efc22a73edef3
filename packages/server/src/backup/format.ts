import { z } from "zod";

/** The store in a backup. */
export const STORE = "server.db";
/** It is written last: a backup without it is incomplete. */
export const MANIFEST = "backup.json";

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** What `backup.json` says about a backup. */
export const manifest = z.strictObject({
  format: z.literal("aenv-backup/1"),
  /** The version of the `aenv` that wrote it. */
  version: z.string(),
  createdAt: z.iso.datetime(),
  /** What is in it, for people. */
  contents: z.strictObject({
    environments: z.number().int(),
    snapshots: z.number().int(),
    services: z.number().int(),
    tokens: z.number().int(),
    rollouts: z.number().int(),
  }),
  /** What the server had and a backup does not contain. */
  notIncluded: z.array(z.string()),
  /** Archives and contents that the store names, but that were missing or damaged in the home. */
  damaged: z.array(z.string()),
  files: z.array(z.strictObject({ path: z.string(), bytes: z.number().int(), digest })),
});
export type BackupManifest = z.infer<typeof manifest>;
export type BackupFile = BackupManifest["files"][number];

const BLOB = /^blobs\/sha256\/([0-9a-f]{2})\/\1[0-9a-f]{62}\.(?:json|tar\.gz)$/;
const SNAPSHOT = /^blobs\/snapshots\/sha256\/([0-9a-f]{2})\/\1[0-9a-f]{62}$/;

/** Whether a backup may contain this path. Nothing else is written into a home. */
export function isBackupPath(path: string): boolean {
  return path === STORE || path === MANIFEST || BLOB.test(path) || SNAPSHOT.test(path);
}
