import * as z from "zod";
import { forkFidelities } from "./instance.ts";
import { isObject } from "./json.ts";
import { knownFields } from "./request-fields.ts";

const ID = /^snap-[0-9a-f]{24}$/;

/** The name of a stored snapshot, unique for its owner. It cannot look like an id. */
export const snapshotName = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})$/, "must be 1 to 63 letters, digits, '.', '_' and '-', and begin with a letter or digit")
  .refine((name) => !ID.test(name), { message: "must not have the form of an id" });

/** The body of `POST /env-instance/:id/snapshot`. Without a field, the response is the state itself and nothing is stored. */
export const snapshotRequest = knownFields({
  /** The id of the snapshot if it is left out. */
  name: snapshotName.optional(),
  /** What is stored: the default is `state`. */
  fidelity: z.enum(forkFidelities).optional(),
  /** Needed to store the files or the memory of an instance that got secrets: they may be in there. */
  include_secrets: z.boolean().optional(),
});
export type SnapshotRequest = z.infer<typeof snapshotRequest>;

/** A stored snapshot as the wire has it. */
export const snapshotRecord = z.looseObject({
  id: z.string().min(1),
  name: z.string(),
  owner: z.string(),
  fidelity: z.enum(forkFidelities),
  /** Instances start from one that is `Ready`. */
  status: z.enum(["Creating", "Ready"]),
  /** What counts against the owner's quota. */
  bytes: z.number(),
  /** Digest of the whole content; null until it is ready. */
  digest: z.string().nullable(),
  /** `name@version`. */
  environment: z.string(),
  /** The instance that it was taken of. */
  instance: z.string(),
  created_at: z.string(),
  /** Connections to other machines that instances from a snapshot with memory do not have. */
  cut: z.array(z.string()).optional(),
});
export type SnapshotRecord = z.infer<typeof snapshotRecord>;

/** Names a stored snapshot of the owner. */
export type SnapshotRef = { readonly id: string } | { readonly name: string };

export function isSnapshotId(text: string): boolean {
  return ID.test(text);
}

/**
 * The stored snapshot that the field `snapshot` of a request names: its name or id as a text, `{ name }` or `{ id }`. Null for every other
 * value: that is a state, which is an object with other fields.
 */
export function parseSnapshotRef(value: unknown): SnapshotRef | null {
  if (typeof value === "string") return isSnapshotId(value) ? { id: value } : { name: value };
  if (!isObject(value) || Object.keys(value).length !== 1) return null;
  if (typeof value.id === "string") return { id: value.id };
  return typeof value.name === "string" ? { name: value.name } : null;
}
