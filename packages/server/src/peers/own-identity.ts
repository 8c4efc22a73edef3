import { identityOf, type ProcessIdentity, type ProcessTable } from "@aenv/sandbox";

/** The identity of this server's process. */
export function ownIdentity(processes: ProcessTable): ProcessIdentity {
  const own = identityOf(processes, process.pid);
  if (own === null) throw new Error(`the system does not report process ${process.pid}, in which this server runs`);
  return own;
}
