import type { ProcessIdentity, ProcessRow } from "../host/process-table.ts";

export interface RelatedQuery {
  /** The program of a sandbox, which is a session leader; null if it is not known. */
  readonly leader: ProcessIdentity | null;
  /** Processes that were found to belong to it earlier. */
  readonly known: readonly ProcessIdentity[];
  /** Processes whose environment has its marker. */
  readonly marked: readonly number[];
}

/**
 * The processes of a sandbox without a control group: those in its program's session, those with its marker, those found
 * earlier, and all their descendants. A process that forked twice, left the session and cleared its environment before it was
 * found once cannot be distinguished from any other process.
 */
export function relatedProcesses(all: readonly ProcessRow[], { leader, known, marked }: RelatedQuery): ProcessIdentity[] {
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

/** The system reuses a pid only when no session has it as its id. So if another process has the leader's pid, the session has ended. */
function sessionTest(all: readonly ProcessRow[], leader: ProcessIdentity | null): (row: ProcessRow) => boolean {
  if (leader === null) return () => false;
  const holder = all.find(({ pid }) => pid === leader.pid);
  if (holder !== undefined && holder.start !== leader.start) return () => false;
  return ({ session, pid }) => session === leader.pid || pid === leader.pid;
}
