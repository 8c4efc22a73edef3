import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Duplex, PassThrough, type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { type DevicePolicy, overlayTar } from "../layer-tar.ts";
import { DiskWatch } from "./free-disk.ts";
import { type ImageMeter, invalidLayer, LayerError, type LayerMeter } from "./limits.ts";

export interface UnpackOptions {
  /** The digest of the uncompressed archive, from the image's configuration. */
  readonly diffId: string;
  readonly devices?: DevicePolicy;
  /** A process that only unpacks is killed instead. */
  readonly signal?: AbortSignal;
}

/** What is unpacked of others. */
export interface UnpackLayerOptions extends UnpackOptions {
  readonly image: ImageMeter;
  /** A descriptor that tar inherits, so that a reader of it sees when tar has ended, however this process ends. */
  readonly alive: number;
}

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

/** Unpacks the blob of a layer, compressed or not. Throws `LayerError` and `LimitExceeded`. */
export async function unpackLayer(blob: string, folder: string, options: UnpackLayerOptions): Promise<void> {
  const { plain, size } = await openBlob(blob);
  const limits = { layer: options.image.layer(size), disk: new DiskWatch(folder, options.image.limits.freeDiskBytes) };
  return unpack([createReadStream(blob), plain], options, startTar(folder, options.alive), limits);
}

/** Unpacks an archive that this process has made of files of this machine. */
export function unpackStream(archive: Readable, folder: string, options: UnpackOptions): Promise<void> {
  return unpack([archive], options, startTar(folder));
}

/**
 * Unpacks a layer into the empty folder of tar, in the form of overlayfs. GNU tar writes the files, because Node can create neither
 * device nodes nor attributes. Throws if the content has another digest; the folder is then incomplete.
 */
async function unpack(
  archive: readonly [NodeJS.ReadableStream, ...NodeJS.ReadWriteStream[]],
  { diffId, devices, signal }: UnpackOptions,
  tar: ReturnType<typeof startTar>,
  limits?: { readonly layer: LayerMeter; readonly disk: DiskWatch },
): Promise<void> {
  const hash = createHash("sha256");
  let entries = 0;
  const count = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      try {
        if (limits !== undefined) {
          limits.layer.addBytes(chunk.length);
          limits.disk.add(chunk.length, limits.layer.entries - entries);
          entries = limits.layer.entries;
        }
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  try {
    const overlay = Duplex.from((layer: AsyncIterable<Buffer>) => overlayTar(layer, devices, limits?.layer));
    await pipeline([...archive, count, overlay, tar.input], signal === undefined ? {} : { signal });
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
  if (digest !== diffId) throw invalidLayer(`its content is ${digest}: the image is damaged`);
}

function startTar(folder: string, alive?: number) {
  const child = spawn("tar", [...EXTRACT, `--directory=${folder}`], {
    stdio: ["pipe", "ignore", "pipe", ...(alive === undefined ? [] : [alive])],
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
  });
  const input = child.stdin as NodeJS.WritableStream;
  let problems = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    problems = (problems + text).slice(0, 2_000);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on("error", (cause) =>
      reject(new LayerError("sandbox.unsupported", "the program tar could not be started; install GNU tar", { cause })),
    );
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(invalidLayer(`it could not be unpacked: ${problems.trim() || `tar ended with ${code}`}`)),
    );
  });
  // It is awaited after the input was written.
  ended.catch(() => {});
  return { input, ended, kill: () => child.kill("SIGKILL") };
}

/** The first bytes say how it is compressed: media types of images are not reliable. */
async function openBlob(blob: string): Promise<{ readonly plain: NodeJS.ReadWriteStream; readonly size: number }> {
  await using file = await open(blob).catch((cause: unknown) => {
    throw new LayerError("bundle.invalid", "the image is incomplete: the content of this layer is missing", { cause });
  });
  const { size } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
  const isGzip = buffer.readUInt16BE() === 0x1f8b;
  const isZstd = buffer.readUInt32BE() === 0x28b5_2ffd;
  return { size, plain: isGzip ? createGunzip() : isZstd ? createZstdDecompress() : new PassThrough() };
}
