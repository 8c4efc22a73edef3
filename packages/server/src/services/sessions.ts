import { createHash } from "node:crypto";

// An MCP session lives in the replica that opened it. So that every server finds that replica, the session's id names it towards the
// client: `<tag>.<the replica's own id of the session>`. The tag is a hash, because an instance's id would open the trainer's API.

const TAG_DIGITS = 16;
const TAGGED = new RegExp(`^([0-9a-f]{${TAG_DIGITS}})\\.(.+)$`, "s");

export interface TaggedSession {
  readonly tag: string;
  /** As the replica knows it. */
  readonly id: string;
}

/** Names a replica without telling its id. */
export function tagOf(instanceId: string): string {
  return createHash("sha256").update(`session of ${instanceId}`).digest("hex").slice(0, TAG_DIGITS);
}

/** The id of a session as the client knows it. */
export function tagSession(tag: string, sessionId: string): string {
  return `${tag}.${sessionId}`;
}

/** The two parts of a client's session id; null if it is none of ours. */
export function readSession(text: string): TaggedSession | null {
  const [, tag, id] = TAGGED.exec(text) ?? [];
  return tag === undefined || id === undefined ? null : { tag, id };
}
