import { createHash } from "node:crypto";

// An MCP session lives in the replica that opened it. So that every server finds that replica, the client gets a session id that names
// it: `<tag>.<the replica's session id>`. The tag is a hash, because the instance id itself would give access to the trainer API.

const TAG_DIGITS = 16;
const TAGGED = new RegExp(`^([0-9a-f]{${TAG_DIGITS}})\\.(.+)$`, "s");

export interface TaggedSession {
  readonly tag: string;
  /** The replica's session id. */
  readonly id: string;
}

/** Identifies a replica without revealing its id. */
export function tagOf(instanceId: string): string {
  return createHash("sha256").update(`session of ${instanceId}`).digest("hex").slice(0, TAG_DIGITS);
}

/** The session id for the client. */
export function tagSession(tag: string, sessionId: string): string {
  return `${tag}.${sessionId}`;
}

/** The two parts of a client's session id; null if it has another form. */
export function readSession(text: string): TaggedSession | null {
  const [, tag, id] = TAGGED.exec(text) ?? [];
  return tag === undefined || id === undefined ? null : { tag, id };
}
