import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { PlatformError, untilAborted } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import type { DevicePolicy } from "../images/layer-tar.ts";
import type { AddedLayer, LayerId, LayerStore } from "../images/layers.ts";
import { GO_ARCHITECTURES, type ImageConfig, type LayoutImage, readLayout } from "../images/layout.ts";
import { formatReference, type ImageReference, parseReference, skopeoSource } from "../images/reference.ts";
import { type MachineVariables, skopeoVariables } from "../images/skopeo.ts";
import { type UnpackLimits, unpackLimits } from "../images/unpack/limits.ts";
import { Places } from "../images/unpack/places.ts";
import { Unpacker } from "../images/unpack/unpacker.ts";
import { RegistryClient, type RegistryReference } from "../registry/client.ts";
import { downloadImage } from "../registry/download.ts";
import { pullError, RegistryFailure } from "../registry/failure.ts";
import { DOWNLOAD_LIMITS, type DownloadLimits } from "../registry/limits.ts";
import { RegistryPolicy, type RegistryPolicyOptions } from "../registry/policy.ts";

/** An image whose layers are unpacked. */
export interface Image {
  readonly reference: string;
  /** The digest of its manifest in the layout. */
  readonly digest: string;
  /** The digest of what the registry returned for the reference; null if it was not read from one. */
  readonly sourceDigest: string | null;
  readonly config: ImageConfig;
  /** Layers from the lowest to the highest. */
  readonly layers: readonly LayerId[];
}

export interface ImagesOptions extends RegistryPolicyOptions {
  /** A folder on the file system of the layers. */
  readonly folder: string;
  readonly layers: LayerStore;
  readonly architecture: Architecture;
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** What a registry may send; `DOWNLOAD_LIMITS` are the defaults. */
  readonly downloadLimits?: Partial<DownloadLimits>;
  /** The pause before a request to a registry is repeated. */
  readonly retryMs?: number;
  /** Receives why a registry could not be read: those who name images are not told. */
  readonly log?: (line: string) => void;
  /** Variables for proxies, certificates and settings of skopeo. */
  readonly variables?: MachineVariables;
  /** The socket of the Docker daemon for `docker-daemon:NAME`; that of `DOCKER_HOST` or Docker's default if absent. */
  readonly dockerSocket?: string;
  readonly devices?: DevicePolicy;
  /** What unpacking an image may take; `unpackLimits` has the defaults. */
  readonly unpackLimits?: Partial<UnpackLimits>;
  /** A pull serves all that wait for it, so it ends by its own limit. */
  readonly pullTimeoutMs?: number;
}

export interface GetOptions {
  /** `missing` uses the image as it was pulled last; `always` asks the registry whether a tag has changed. */
  readonly pull: "missing" | "always";
  readonly signal: AbortSignal;
  /** Called if the image has to be pulled, or is being pulled already. */
  readonly onPull?: () => void;
}

const PULL_TIMEOUT_MS = 15 * 60_000;
/** Images whose layers are unpacked at the same time; others wait. Each has a process. */
const MIN_UNPACKED_AT_ONCE = 4;

/** Where an engine keeps layers, and what is known of images: in its own folder, or in a store that several share. */
export function storeFolders(own: string, shared: string | undefined): { readonly store: string; readonly images: string } {
  const store = shared ?? join(own, "store");
  return { store, images: join(shared ?? own, "images") };
}

/** Images by reference. Daemons and archives are read with skopeo, registries and OCI layouts directly. */
export class Images {
  readonly #options: ImagesOptions;
  readonly #policy: RegistryPolicy;
  readonly #limits: UnpackLimits;
  readonly #pulls = new Map<string, Promise<Image>>();
  readonly #unpacking = new Places(Math.max(MIN_UNPACKED_AT_ONCE, availableParallelism()));

  constructor(options: ImagesOptions) {
    this.#options = options;
    this.#policy = new RegistryPolicy(options);
    this.#limits = unpackLimits(options.unpackLimits);
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  }

  /** The image with all its layers unpacked. Call `layers.use` before relying on them. */
  async get(text: string, { pull, signal, onPull }: GetOptions): Promise<Image> {
    const reference = parseReference(text);
    const key = formatReference(reference);
    // A layout is on this machine, so reading it again costs little and finds its changes.
    const isFixed = reference.from !== "oci" && (pull === "missing" || isPinned(reference));
    const known = isFixed ? await this.#find(key) : null;
    if (known !== null) return known;
    if (reference.from !== "oci") onPull?.();
    let pulling = this.#pulls.get(key);
    if (pulling === undefined) {
      pulling = this.#pull(reference, key).finally(() => this.#pulls.delete(key));
      this.#pulls.set(key, pulling);
    }
    return untilAborted(pulling, signal);
  }

  /** Whether `get` with `missing` finds the image without reading it again. */
  async has(text: string): Promise<boolean> {
    const reference = parseReference(text);
    return reference.from !== "oci" && (await this.#find(formatReference(reference))) !== null;
  }

  /** Takes an image from another place, such as an archive, under a name by which `get` finds it. */
  async load(text: string, source: string, signal: AbortSignal): Promise<Image> {
    const key = formatReference(parseReference(text));
    return untilAborted(this.#pull(parseReference(source), key), signal);
  }

  /** Takes the image that `write` puts into a layout. It need not write the layers that are there, whose files in the layout are empty. */
  async receive(text: string, write: (layout: string) => Promise<void>, signal: AbortSignal): Promise<Image> {
    const key = formatReference(parseReference(text));
    const layout = await this.#options.layers.temporaryFolder();
    try {
      const blobs = join(layout, "blobs/sha256");
      await mkdir(blobs, { recursive: true });
      for (const layer of await this.#knownLayers()) await writeFile(join(blobs, layer.replace("sha256:", "")), "");
      await write(layout);
      return await this.#unpack(layout, "image", key, null, signal);
    } finally {
      await rm(layout, { recursive: true, force: true });
    }
  }

  /** The layers of all images that are there. */
  async #knownLayers(): Promise<ReadonlySet<LayerId>> {
    const found = new Set<LayerId>();
    for (const name of await readdir(this.#options.folder)) {
      if (!name.endsWith(".json")) continue;
      const { layers } = JSON.parse(await readFile(join(this.#options.folder, name), "utf8")) as Image;
      for (const layer of layers) if (this.#options.layers.has(layer)) found.add(layer);
    }
    return found;
  }

  async #find(key: string): Promise<Image | null> {
    const text = await readFile(this.#recordOf(key), "utf8").catch(() => null);
    if (text === null) return null;
    const image = JSON.parse(text) as Image;
    for (const layer of image.layers) if (!this.#options.layers.has(layer)) return null;
    return image;
  }

  async #pull(reference: ImageReference, key: string): Promise<Image> {
    const signal = AbortSignal.timeout(this.#options.pullTimeoutMs ?? PULL_TIMEOUT_MS);
    if (reference.from === "oci") return this.#unpack(reference.path, reference.name, key, null, signal);
    if (reference.from === "registry") return this.#download(reference, key, signal);
    const layout = await this.#options.layers.temporaryFolder();
    try {
      const platform = ["--override-os=linux", `--override-arch=${GO_ARCHITECTURES[this.#options.architecture]}`];
      // Layers of archives are not compressed, and to compress them for a moment would take longer than all the rest.
      const copy = ["copy", "--quiet", "--dest-oci-accept-uncompressed-layers", ...this.#access(reference)];
      await this.#skopeo([...platform, ...copy, skopeoSource(reference), `oci:${layout}:image`], signal);
      return await this.#unpack(layout, "image", key, null, signal);
    } finally {
      await rm(layout, { recursive: true, force: true });
    }
  }

  async #download(reference: RegistryReference, key: string, signal: AbortSignal): Promise<Image> {
    const { authFile, variables, architecture, layers, retryMs } = this.#options;
    const freeDiskBytes = this.#limits.freeDiskBytes ?? DOWNLOAD_LIMITS.freeDiskBytes;
    const limits = { ...DOWNLOAD_LIMITS, freeDiskBytes, ...this.#options.downloadLimits };
    let layout: string | null = null;
    try {
      await using client = new RegistryClient(reference, {
        policy: this.#policy,
        signal,
        ...(authFile !== undefined && { authFile }),
        ...(variables !== undefined && { variables }),
        ...(retryMs !== undefined && { retryMs }),
      });
      const manifest = await client.manifest(reference.digest ?? reference.tag ?? "latest", limits.manifestBytes);
      const known = await this.#find(key);
      if (known?.sourceDigest === manifest.digest) return known;
      layout = await layers.temporaryFolder();
      await downloadImage(client, manifest, { layout, name: "image", architecture, limits, signal });
      return await this.#unpack(layout, "image", key, manifest.digest, signal);
    } catch (error) {
      throw this.#pullError(key, error, signal);
    } finally {
      if (layout !== null) await rm(layout, { recursive: true, force: true });
    }
  }

  #pullError(image: string, error: unknown, signal: AbortSignal): unknown {
    if (error instanceof RegistryFailure) {
      this.#options.log?.(`the image ${image} could not be pulled (${error.kind}): ${error.message}`);
      return pullError(image, error);
    }
    if (!signal.aborted || error !== signal.reason) return error;
    const seconds = (this.#options.pullTimeoutMs ?? PULL_TIMEOUT_MS) / 1_000;
    return new PlatformError("sandbox.start_failed", `the image '${image}' could not be pulled: it took longer than ${seconds} s`, {
      cause: error,
    });
  }

  async #unpack(layout: string, name: string | null, key: string, sourceDigest: string | null, signal: AbortSignal): Promise<Image> {
    const { digest, config, layers: blobs } = await readLayout(layout, name, this.#options.architecture, key);
    await this.#addLayers(key, blobs, signal);
    const image: Image = { reference: key, digest, sourceDigest, config, layers: blobs.map(({ diffId }) => diffId) };
    const part = join(this.#options.folder, `.part-${randomBytes(6).toString("hex")}`);
    await writeFile(part, JSON.stringify(image));
    await rename(part, this.#recordOf(key));
    return image;
  }

  /** Adds the layers that are not there. If one is refused, those that came with it do not stay either. */
  async #addLayers(image: string, blobs: LayoutImage["layers"], signal: AbortSignal): Promise<void> {
    const { layers, devices } = this.#options;
    if (blobs.every(({ diffId }) => layers.has(diffId))) return;
    const added: AddedLayer[] = [];
    try {
      // Taken before layers: a pull that waits for a layer of another one knows that this one has a place.
      using _ = await this.#unpacking.take(signal);
      await using unpacker = new Unpacker({ image, limits: this.#limits, signal, ...(devices !== undefined && { devices }) });
      for (const { diffId, blob } of blobs) {
        const layer = await layers.add(diffId, (folder) => unpacker.unpack({ diffId, blob, folder }));
        if (layer !== null) added.push(layer);
      }
    } catch (error) {
      await layers.discard(added);
      if (!signal.aborted) throw error;
      throw new PlatformError("sandbox.start_failed", `the image ${image} was not unpacked, because its pull took too long`, {
        cause: error,
      });
    }
  }

  #access(reference: ImageReference): string[] {
    const { dockerSocket } = this.#options;
    return reference.from === "docker-daemon" && dockerSocket !== undefined ? [`--src-daemon-host=unix://${dockerSocket}`] : [];
  }

  #skopeo(args: readonly string[], signal: AbortSignal): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      execFile(
        "skopeo",
        args,
        { env: skopeoVariables(this.#options.variables), signal, encoding: "buffer", maxBuffer: 16 * 2 ** 20 },
        (error, stdout, stderr) => {
          if (error === null) return resolve(stdout);
          const source = args.find((arg) => /^(?:docker-daemon|docker-archive):/.test(arg));
          if (error.code === "ENOENT")
            return reject(
              new PlatformError("sandbox.unsupported", `${source} cannot be read: install skopeo on the server's machine`, {
                cause: error,
              }),
            );
          const reason = stderr.toString("utf8").trim().split("\n").at(-1);
          reject(
            new PlatformError("sandbox.start_failed", `the image ${source} could not be read: ${reason || error.message}`, {
              cause: error,
            }),
          );
        },
      );
    });
  }

  #recordOf(key: string): string {
    return join(this.#options.folder, `${createHash("sha256").update(key).digest("hex")}.json`);
  }
}

/** A digest always names the same image. */
function isPinned(reference: ImageReference): boolean {
  return reference.from === "registry" && reference.digest !== null;
}
