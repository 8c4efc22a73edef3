import { readFileSync } from "node:fs";

/** Names a process so that no later one with the same number is taken for it: its number, its start and the boot it belongs to. */
export function ownIdentity(): string {
  return identityOf(process.pid) ?? `${process.pid}`;
}

/** Whether the process that bore this name still runs. */
export function isRunning(identity: string): boolean {
  const pid = Number.parseInt(identity, 10);
  if (!(pid > 0)) return false;
  // Where the system tells no more than numbers, the number has to do.
  return process.platform === "linux" ? identityOf(pid) === identity : hasNumber(pid);
}

/** Null if there is no such process, or if it has ended and nobody has asked yet how. */
export function identityOf(pid: number): string | null {
  const stat = read(`/proc/${pid}/stat`);
  // The name, in parentheses, may itself hold spaces and parentheses. Behind it: the state first, the start time twentieth.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const start = fields[19];
  if (start === undefined || fields[0] === "Z" || fields[0] === "X") return null;
  return `${pid} ${start} ${read("/proc/sys/kernel/random/boot_id").slice(0, 8)}`;
}

function hasNumber(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Someone else's, but there.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
