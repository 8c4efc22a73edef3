import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type BundleManifest, isPlatformError, PlatformError } from "@aenv/contract";
import type { BlobStore } from "../archives/blobs.ts";
import { hexOf } from "../archives/digest.ts";
import { isMissing, listNames, sync } from "../archives/files.ts";
import { type UnpackLimits, unpack, unpackLimits } from "./unpack.ts";

export interface BundlesOptions {
  readonly home: string;
  readonly blobs: BlobStore;
  readonly limits?: UnpackLimits;
}

/** An unpacked bundle: main.js, config.json, manifest.json and the data. */
export interface Bundle {
  readonly folder: string;
  readonly manifest: BundleManifest;
}

const TEMPORARY = "unpacking-";
/** Longer than unpacking any bundle takes. */
const ABANDONED_MS = 3_600_000;

/** Unpacks bundles, each once, into `bundles/<digest>`. A folder appears there complete and verified, or not at all. */
export class Bundles {
  readonly #root: string;
  readonly #blobs: BlobStore;
  readonly #limits: UnpackLimits;
  readonly #unpacking = new Map<string, Promise<void>>();

  constructor({ home, blobs, limits = unpackLimits }: BundlesOptions) {
    this.#root = join(home, "bundles");
    this.#blobs = blobs;
    this.#limits = limits;
  }

  async open(digest: string): Promise<Bundle> {
    const folder = await this.folder(digest);
    return { folder, manifest: JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as BundleManifest };
  }

  async folder(digest: string): Promise<string> {
    const folder = join(this.#root, hexOf(digest));
    for (;;) {
      const unpacking = this.#unpacking.get(digest);
      if (unpacking !== undefined) await unpacking;
      else if (isFolder(folder)) return folder;
      else if (!this.#unpacking.has(digest)) await this.#begin(digest, folder);
    }
  }

  /** Deletes the folders of deleted blobs, and partly unpacked folders that an ended process left behind. */
  async collect(gone: Iterable<string>): Promise<void> {
    for (const digest of gone) await this.#discard(join(this.#root, hexOf(digest)));
    for (const name of await listNames(this.#root)) {
      const path = join(this.#root, name);
      if (name.startsWith(TEMPORARY) && (await isOld(path))) await rm(path, { recursive: true, force: true });
    }
  }

  /** Concurrent requests for a bundle share one unpacking and its result. */
  #begin(digest: string, folder: string): Promise<void> {
    const unpacking = this.#unpack(digest, folder).finally(() => this.#unpacking.delete(digest));
    this.#unpacking.set(digest, unpacking);
    return unpacking;
  }

  async #unpack(digest: string, folder: string): Promise<void> {
    const temporary = join(this.#root, TEMPORARY + randomUUID());
    await mkdir(this.#root, { recursive: true });
    try {
      const { stream } = await this.#blobs.open(digest);
      await unpack(stream, temporary, { digest, limits: this.#limits });
      await sync(temporary);
      await rename(temporary, folder);
      await sync(this.#root);
    } catch (error) {
      // Another process on this disk was first.
      if (isFolder(folder)) return;
      throw isPlatformError(error) ? error : new PlatformError("internal", `bundle ${digest} could not be unpacked`, { cause: error });
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }

  /** Renamed first, so that a partly deleted folder is never opened. */
  async #discard(folder: string): Promise<void> {
    const trash = join(this.#root, TEMPORARY + randomUUID());
    try {
      await rename(folder, trash);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    await rm(trash, { recursive: true, force: true });
  }
}

/** Synchronous on purpose: in Node's small thread pool every start would queue behind file writes and deletions. */
function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found !== null && found.mtimeMs < Date.now() - ABANDONED_MS;
}
