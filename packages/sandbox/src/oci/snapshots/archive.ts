import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, type Writable } from "node:stream";
import { PlatformError } from "@aenv/contract";

/** Of the attributes of files, only those that a layer may have. */
const ATTRIBUTES = ["--xattrs", ...["user.*", "security.capability", "trusted.overlay.opaque"].map((name) => `--xattrs-include=${name}`)];
/** Names of owners are not looked up, and the same files always give the same bytes. */
const PACK = ["--sort=name", "--format=posix", "--pax-option=delete=atime,delete=ctime,exthdr.name=%d/%f", "--numeric-owner", "--sparse"];
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

/** Fills an existing folder from an archive: a path of a file, or the content. */
export async function unpackFolder(archive: string | Readable, folder: string, signal: AbortSignal): Promise<void> {
  const source = typeof archive === "string" ? archive : "-";
  const child = spawn("tar", ["--extract", `--file=${source}`, ...UNPACK, ...ATTRIBUTES, `--directory=${folder}`], {
    stdio: [typeof archive === "string" ? "ignore" : "pipe", "ignore", "pipe"],
    signal,
  });
  const ended = endOf(child, "the files of a snapshot could not be unpacked");
  if (typeof archive === "string" || child.stdin === null) return ended;
  ended.catch(() => undefined); // thrown below
  try {
    await feed(archive, child.stdin);
  } catch (error) {
    child.kill();
    throw error;
  }
  await ended;
}

/** Reads the source to its end: tar leaves the padding of an archive, and a damaged source reports that at its end. */
async function feed(source: Readable, target: Writable): Promise<void> {
  const closed = new Promise<void>((resolve) => target.once("close", resolve));
  target.on("error", () => undefined); // tar has ended, and says why
  for await (const chunk of source) {
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
