import { readFile } from "node:fs/promises";
import { PlatformError } from "@aenv/contract";
import { launch } from "../../host/launcher.ts";
import { parseMountinfo } from "../../host/mountinfo.ts";

/** The kernel copies the options of a mount into one page. */
const MAX_OPTIONS = 4_095;

export interface MountRequest {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly options: readonly string[];
  /** Relative paths in the options are resolved here. */
  readonly cwd?: string;
}

export async function mount({ type, source, target, options, cwd }: MountRequest): Promise<void> {
  const joined = options.join(",");
  if (Buffer.byteLength(joined) > MAX_OPTIONS)
    throw new PlatformError(
      "sandbox.unsupported",
      `${target} cannot be mounted: its options have more than ${MAX_OPTIONS} bytes; use an image with fewer layers`,
    );
  await run("mount", ["-t", type, "-o", joined, source, target], `${target} could not be mounted`, cwd);
}

/**
 * No-op if nothing is mounted there. A mount that is still in use disappears from the path now, and entirely when its last user ends.
 * `isTree`: with what is mounted below it.
 */
export async function unmount(target: string, isTree = false): Promise<void> {
  while ((await mountPoints()).has(target)) {
    try {
      await run("umount", [...(isTree ? ["--recursive"] : []), target], `${target} could not be unmounted`);
    } catch {
      await run("umount", ["--lazy", target], `${target} could not be unmounted`).catch(async (error: unknown) => {
        // Another process may have been faster.
        if ((await mountPoints()).has(target)) throw error;
      });
    }
  }
}

export async function mountPoints(): Promise<Set<string>> {
  return new Set(parseMountinfo(await readFile("/proc/self/mountinfo", "utf8")).map(({ target }) => target));
}

/** Paths in the options of an overlay: these characters separate them. */
export function checkMountPath(path: string): void {
  if (/[,:\\"]/.test(path))
    throw new PlatformError("sandbox.unsupported", `sandboxes cannot be in '${path}': the path of an overlay must not have , : " or \\`);
}

export async function run(command: string, args: readonly string[], problem: string, cwd?: string): Promise<void> {
  const ended = await launch({ argv: [command, ...args], ...(cwd !== undefined && { cwd }) });
  if (ended.exitCode === 0) return;
  throw new PlatformError(
    "sandbox.start_failed",
    `${problem}: ${ended.stderr.toString().trim() || `${command} ended with ${ended.signal ?? ended.exitCode}`}`,
  );
}
