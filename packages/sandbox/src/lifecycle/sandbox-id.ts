import { PlatformError } from "@aenv/contract";

/** An id is also the name of a folder, so it must not lead out of its parent. */
export function isSandboxId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);
}

export function existsAlready(id: string, cause?: unknown): PlatformError {
  return new PlatformError("sandbox.exists", `a sandbox '${id}' exists already; destroy it first, or choose another id`, { cause });
}
