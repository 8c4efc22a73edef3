import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { boundedChunks } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import { isForMachine } from "../images/layout.ts";
import { isDigest } from "../images/reference.ts";
import { type Json, type Manifest, type RegistryClient, readFailure } from "./client.ts";
import { RegistryFailure } from "./failure.ts";
import type { DownloadLimits } from "./limits.ts";

export interface DownloadOptions {
  /** An empty folder, which becomes an OCI layout with the one image. */
  readonly layout: string;
  /** The name of the image in the layout. */
  readonly name: string;
  readonly architecture: Architecture;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
}

const MAX_NESTING = 4;
const MAX_CHOICES = 1_000;
const AT_ONCE = 3;
const CHECK_DISK_BYTES = 64 * 2 ** 20;

/** Downloads the image of a manifest, or that for this machine of an index, into an OCI layout. Sizes and digests are checked. */
export async function downloadImage(client: RegistryClient, top: Manifest, options: DownloadOptions): Promise<void> {
  const { layout, name, limits, architecture } = options;
  const manifest = await imageOf(client, top, architecture, limits);
  const config = blobOf(manifest.content.config, limits.configBytes, "configuration");
  const layers = layersOf(manifest.content, limits);
  const blobs = new Map([config, ...layers].map((blob) => [blob.digest, blob]));
  await mkdir(join(layout, "blobs/sha256"), { recursive: true });
  const left = [...blobs.values()];
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const work = async () => {
    for (let blob = left.shift(); blob !== undefined; blob = left.shift()) await downloadBlob(client, blob, { ...options, signal });
  };
  const workers = Array.from({ length: AT_ONCE }, work);
  try {
    await Promise.all(workers);
  } catch (error) {
    stop.abort();
    // The folder is removed next, so nobody may write to it any more.
    await Promise.allSettled(workers);
    throw error;
  }
  await writeFile(pathOf(layout, manifest.digest), manifest.bytes);
  const entry = {
    mediaType: mediaTypeOf(manifest),
    digest: manifest.digest,
    size: manifest.bytes.length,
    annotations: { "org.opencontainers.image.ref.name": name },
  };
  await writeFile(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await writeFile(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
}

async function imageOf(client: RegistryClient, top: Manifest, architecture: Architecture, limits: DownloadLimits): Promise<Manifest> {
  let manifest = top;
  for (let depth = 0; depth <= MAX_NESTING; depth++) {
    const { manifests, layers, schemaVersion } = manifest.content;
    // A document that is both could be read as one thing here and as another elsewhere.
    if (Array.isArray(manifests) && layers !== undefined) throw invalid("its manifest is an index and an image at the same time");
    if (Array.isArray(layers)) return manifest;
    if (!Array.isArray(manifests))
      throw invalid(
        schemaVersion === 1 ? "its manifest has the format 1, which is no longer read; push it again" : "its manifest has no layers",
      );
    const found = manifests
      .slice(0, MAX_CHOICES)
      .map(object)
      .find((one) => isForMachine(object(one.platform), architecture));
    if (found === undefined) throw invalid(`it has no image for linux on ${architecture}, which this machine is`);
    manifest = await client.manifest(digestOf(found.digest, "manifest"), limits.manifestBytes);
  }
  throw invalid(`its indexes are nested more than ${MAX_NESTING} times`);
}

/** Layers that the manifest says to fetch from elsewhere (`urls`) are asked of the registry too. */
function layersOf({ layers }: Json, { layers: most, layerBytes, imageBytes }: DownloadLimits): Blob[] {
  const list = layers as readonly unknown[];
  if (list.length > most) throw invalid(`it has ${list.length} layers, and at most ${most} are accepted`);
  const blobs = list.map((layer) => blobOf(layer, layerBytes, "layer"));
  const total = blobs.reduce((sum, { size }) => sum + size, 0);
  if (total > imageBytes) throw invalid(`its layers have ${total} bytes, and at most ${imageBytes} are accepted`);
  return blobs;
}

function blobOf(value: unknown, maxBytes: number, what: string): Blob {
  const { digest, size } = object(value);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) throw invalid(`its manifest gives no size for a ${what}`);
  if (size > maxBytes) throw invalid(`it has a ${what} of ${size} bytes, and at most ${maxBytes} are accepted`);
  return { digest: digestOf(digest, what), size };
}

function digestOf(value: unknown, what: string): string {
  if (isDigest(value)) return value;
  throw invalid(`its manifest has a ${what} without a digest, which is sha256: and 64 hexadecimal digits`);
}

function downloadBlob(client: RegistryClient, { digest, size }: Blob, { layout, limits, signal }: DownloadOptions): Promise<void> {
  return client.retried(async () => {
    signal.throwIfAborted();
    const hash = createHash("sha256");
    let received = 0;
    let nextCheck = 0;
    const check = async function* (body: AsyncIterable<Buffer>) {
      for await (const chunk of boundedChunks(body, { maxBytes: size })) {
        received += chunk.length;
        hash.update(chunk);
        if (received >= nextCheck) {
          nextCheck = received + CHECK_DISK_BYTES;
          await assertFreeDisk(layout, limits.freeDiskBytes);
        }
        yield chunk;
      }
    };
    const body = await client.blob(digest);
    try {
      await pipeline(body, check, createWriteStream(pathOf(layout, digest)), { signal });
    } catch (error) {
      throw signal.aborted ? signal.reason : readFailure(error, `the blob ${digest}`);
    }
    if (received < size)
      throw new RegistryFailure("unreachable", `the blob ${digest} ended after ${received} of ${size} bytes`, { isTemporary: true });
    const actual = `sha256:${hash.digest("hex")}`;
    if (actual !== digest) throw invalid(`its registry has the content ${actual} as ${digest}`);
  });
}

async function assertFreeDisk(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < bytes) throw new RegistryFailure("full", `the disk of the server has less than ${bytes} free bytes left`);
}

function mediaTypeOf({ content, contentType }: Manifest): string {
  const mediaType = typeof content.mediaType === "string" ? content.mediaType : contentType;
  // Only one of the two says that it is no index.
  return mediaType.includes("docker")
    ? "application/vnd.docker.distribution.manifest.v2+json"
    : "application/vnd.oci.image.manifest.v1+json";
}

function pathOf(layout: string, digest: string): string {
  return join(layout, "blobs/sha256", digest.slice("sha256:".length));
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function invalid(problem: string): RegistryFailure {
  return new RegistryFailure("invalid", problem);
}
