import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Duplex, PassThrough, type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { PlatformError } from "@aenv/contract";
import { type DevicePolicy, overlayTar } from "./layer-tar.ts";

export interface UnpackOptions {
  /** The digest of the uncompressed archive, from the image's configuration. */
  readonly diffId: string;
  readonly devices?: DevicePolicy;
  readonly maxBytes?: number;
  readonly signal: AbortSignal;
}

const MAX_BYTES = 64 * 2 ** 30;

/** All attributes are filtered before. Owners are numbers: names would be looked up on this machine. */
const EXTRACT = [
  "--extract",
  "--file=-",
  "--preserve-permissions",
  "--same-owner",
  "--numeric-owner",
  "--xattrs",
  "--xattrs-include=*",
  "--delay-directory-restore",
  "--warning=no-timestamp",
];

/** Unpacks the blob of a layer, compressed or not. */
export async function unpackLayer(blob: string, folder: string, options: UnpackOptions): Promise<void> {
  const plain = await decompressor(blob);
  return unpack([createReadStream(blob), plain], folder, options);
}

/** Unpacks a layer that is not compressed. */
export function unpackStream(archive: Readable, folder: string, options: UnpackOptions): Promise<void> {
  return unpack([archive], folder, options);
}

/**
 * Unpacks a layer into an empty folder, in the form of overlayfs. GNU tar writes the files, because Node can create neither
 * device nodes nor attributes. Throws `bundle.invalid` if the content has another digest; the folder is then incomplete.
 */
async function unpack(
  archive: readonly [NodeJS.ReadableStream, ...NodeJS.ReadWriteStream[]],
  folder: string,
  options: UnpackOptions,
): Promise<void> {
  const { diffId, devices, signal } = options;
  const hash = createHash("sha256");
  let size = 0;
  const count = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      size += chunk.length;
      done(
        size > (options.maxBytes ?? MAX_BYTES) ? invalid(`layer ${diffId} has more than ${options.maxBytes ?? MAX_BYTES} bytes`) : null,
        chunk,
      );
    },
  });
  const tar = startTar(folder);
  try {
    const overlay = Duplex.from((layer: AsyncIterable<Buffer>) => overlayTar(layer, devices));
    await pipeline([...archive, count, overlay, tar.input], { signal });
  } catch (error) {
    tar.kill();
    await tar.ended.catch(() => {});
    // When tar has failed, its message says more than the closed pipe.
    throw (error as NodeJS.ErrnoException).code === "EPIPE"
      ? await tar.ended.then(
          () => error,
          (failure) => failure,
        )
      : error;
  }
  await tar.ended;
  const digest = `sha256:${hash.digest("hex")}`;
  if (digest !== diffId) throw invalid(`layer ${diffId} has the content ${digest}: the image is damaged`);
}

function startTar(folder: string) {
  const child = spawn("tar", [...EXTRACT, `--directory=${folder}`], {
    stdio: ["pipe", "ignore", "pipe"],
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
  });
  let problems = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    problems = (problems + text).slice(0, 2_000);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on("error", (cause) =>
      reject(new PlatformError("sandbox.unsupported", "the program tar could not be started; install GNU tar", { cause })),
    );
    child.on("close", (code) =>
      code === 0
        ? resolve()
        : reject(invalid(`a layer could not be unpacked into ${folder}: ${problems.trim() || `tar ended with ${code}`}`)),
    );
  });
  // It is awaited after the input was written.
  ended.catch(() => {});
  return { input: child.stdin, ended, kill: () => child.kill("SIGKILL") };
}

/** By the first bytes: media types of images are not reliable. */
async function decompressor(blob: string): Promise<NodeJS.ReadWriteStream> {
  await using file = await open(blob);
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
  if (buffer.readUInt16BE() === 0x1f8b) return createGunzip();
  return buffer.readUInt32BE() === 0x28b5_2ffd ? createZstdDecompress() : new PassThrough();
}

function invalid(message: string): PlatformError {
  return new PlatformError("bundle.invalid", message);
}
