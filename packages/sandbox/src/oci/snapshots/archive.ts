import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, type Writable } from "node:stream";
import { PlatformError } from "@aenv/contract";
import { describeLimit } from "../../images/unpack/answers.ts";
import { assertFree, DiskWatch } from "../../images/unpack/free-disk.ts";
import { LimitExceeded } from "../../images/unpack/limits.ts";

/** Only those attributes of files that a layer may have. */
const ATTRIBUTES = ["--xattrs", ...["user.*", "security.capability", "trusted.overlay.opaque"].map((name) => `--xattrs-include=${name}`)];
/** Names of owners are not looked up, and the same files always give the same bytes. */
const PACK = ["--sort=name", "--format=posix", "--pax-option=delete=atime,delete=ctime,exthdr.name=%d/%f", "--numeric-owner", "--sparse"];
const CHECK_EVERY_MS = 100;
const UNPACK = ["--numeric-owner", "--same-owner", "--preserve-permissions", "--delay-directory-restore"];

/** The content of a folder as a tar archive. A layer's files keep the form of overlayfs: deleted ones are devices 0:0. */
export function packFolder(folder: string, signal: AbortSignal): Readable {
  return Readable.from(pack(folder, signal), { objectMode: false });
}

async function* pack(folder: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const args = ["--create", "--file=-", ...PACK, ...ATTRIBUTES, `--directory=${folder}`, "."];
  const child = spawn("tar", args, { stdio: ["ignore", "pipe", "pipe"], signal });
  const ended = endOf(child, `${folder} could not be read`);
  ended.catch(() => undefined); // thrown below
  try {
    yield* child.stdout;
    // The reader sees the end only if tar has read everything.
    await ended;
  } finally {
    child.kill();
  }
}

export interface UnpackFolderOptions {
  readonly signal: AbortSignal;
  /** What stays free on the disk; null for the default. */
  readonly freeDiskBytes: number | null;
  /** Called with the size of each chunk of the content before it is written. What it throws ends the work. */
  readonly onBytes?: (bytes: number) => void;
}

/** Fills an existing folder from an archive: a path of a file, or the content. If it fails, nobody writes to the folder any more. */
export async function unpackFolder(archive: string | Readable, folder: string, options: UnpackFolderOptions): Promise<void> {
  try {
    const disk = new DiskWatch(folder, options.freeDiskBytes);
    if (typeof archive === "string") await unpackFile(archive, folder, options);
    else
      await unpackContent(archive, folder, options, (bytes) => {
        disk.add(bytes);
        options.onBytes?.(bytes);
      });
  } catch (error) {
    if (!(error instanceof LimitExceeded)) throw error;
    throw new PlatformError("sandbox.no_capacity", `the files of a snapshot were not unpacked: ${describeLimit(error)}`, { cause: error });
  }
}

async function unpackFile(path: string, folder: string, { signal, freeDiskBytes }: UnpackFolderOptions): Promise<void> {
  const { child, ended } = startUnpacking(path, folder, signal);
  let full: unknown = null;
  // The content does not come through this process, which would take time.
  const checking = setInterval(() => {
    try {
      assertFree(folder, freeDiskBytes);
    } catch (error) {
      full = error;
      child.kill("SIGKILL");
    }
  }, CHECK_EVERY_MS);
  try {
    await ended;
  } catch (error) {
    throw full ?? error;
  } finally {
    clearInterval(checking);
  }
}

async function unpackContent(
  content: Readable,
  folder: string,
  { signal }: UnpackFolderOptions,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const { child, ended } = startUnpacking("-", folder, signal);
  ended.catch(() => undefined); // thrown below
  try {
    await feed(content, child.stdin as Writable, onBytes);
  } catch (error) {
    child.kill("SIGKILL");
    await ended.catch(() => undefined);
    throw error;
  }
  await ended;
}

function startUnpacking(source: string, folder: string, signal: AbortSignal) {
  const child = spawn("tar", ["--extract", `--file=${source}`, ...UNPACK, ...ATTRIBUTES, `--directory=${folder}`], {
    stdio: [source === "-" ? "pipe" : "ignore", "ignore", "pipe"],
    signal,
  });
  return { child, ended: endOf(child, "the files of a snapshot could not be unpacked") };
}

/** Reads the source to its end: tar leaves the padding of an archive, and a damaged source reports that at its end. */
async function feed(source: Readable, target: Writable, onBytes: (bytes: number) => void): Promise<void> {
  const closed = new Promise<void>((resolve) => target.once("close", resolve));
  target.on("error", () => undefined); // tar has ended, and says why
  for await (const chunk of source) {
    onBytes(chunk.length);
    if (target.writable && !target.write(chunk)) await Promise.race([new Promise((resolve) => target.once("drain", resolve)), closed]);
  }
  target.end();
}

async function endOf(child: ChildProcess, problem: string): Promise<void> {
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-2_000);
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new PlatformError("sandbox.start_failed", `${problem}: ${errors.trim() || "tar failed"}`);
}
