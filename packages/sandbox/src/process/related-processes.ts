import type { ProcessIdentity, ProcessRow } from "./process-table.ts";

export interface MemberQuery {
  /** The program of a sandbox, which leads a session of its own; null if it is not known. */
  readonly leader: ProcessIdentity | null;
  /** Processes that were seen to belong to it before. */
  readonly known: readonly ProcessIdentity[];
  /** Processes that carry its mark. */
  readonly marked: readonly number[];
}

/**
 * The processes that belong to a sandbox where no control group says so: those of its program's session, those that carry its mark,
 * those that were seen before, and all their descendants. What forked away, left the session and cleaned its environment before it
 * was seen once cannot be told from any other process.
 */
export function membersOf(all: readonly ProcessRow[], { leader, known, marked }: MemberQuery): ProcessIdentity[] {
  const isKnown = (row: ProcessRow) => known.some(({ pid, start }) => pid === row.pid && start === row.start);
  const isMarked = new Set(marked);
  const inSession = sessionTest(all, leader);
  const children = new Map<number, ProcessRow[]>();
  for (const row of all) {
    const siblings = children.get(row.parent);
    if (siblings === undefined) children.set(row.parent, [row]);
    else siblings.push(row);
  }
  const members = new Map<number, ProcessRow>();
  const queue = all.filter((row) => isMarked.has(row.pid) || inSession(row) || isKnown(row));
  for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
    if (members.has(row.pid)) continue;
    members.set(row.pid, row);
    queue.push(...(children.get(row.pid) ?? []));
  }
  return [...members.values()].map(({ pid, start }) => ({ pid, start }));
}

/** A number is given to a new process only when no session uses it any more: if the leader's has passed on, its session has ended. */
function sessionTest(all: readonly ProcessRow[], leader: ProcessIdentity | null): (row: ProcessRow) => boolean {
  if (leader === null) return () => false;
  const holder = all.find(({ pid }) => pid === leader.pid);
  if (holder !== undefined && holder.start !== leader.start) return () => false;
  return ({ session, pid }) => session === leader.pid || pid === leader.pid;
}
