import type { OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "@aenv/kit";

/** Writes to the log of the process. */
export type Log = (line: string) => void;

/** The engine of a server does not change, so a limit that it refused once is not tried again. */
const unlimited = new WeakSet<object>();

/**
 * Opens a sandbox with the storage that its task names as the limit of its disk, on engines that have such a limit. Others, such as
 * Docker on most storages, refuse it: then the disk has no limit, as in the reference, and the log says so. `engine` stands for the engine.
 */
export async function openSandbox(
  sandboxes: TaskSandboxes,
  { diskMb, ...options }: OpenSandboxOptions,
  engine: object,
  log: Log = (line) => process.stderr.write(`${line}\n`),
): Promise<TaskSandbox> {
  if (diskMb === undefined || unlimited.has(engine)) return sandboxes.open(options);
  try {
    return await sandboxes.open({ ...options, diskMb });
  } catch (error) {
    if (!isRefusedDisk(error)) throw error;
    unlimited.add(engine);
    log(`storage_mb = ${diskMb} is not a limit here: ${(error as Error).message}`);
    return sandboxes.open(options);
  }
}

function isRefusedDisk(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "sandbox.unsupported" && /\bdisk\b/.test(error.message);
}
