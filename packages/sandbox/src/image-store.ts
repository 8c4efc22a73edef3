import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { messageOf, PlatformError } from "@aenv/contract";
import { DockerApi } from "./docker/api.ts";
import { DockerImages, daemonName } from "./docker/images.ts";
import type { Architecture } from "./engine/architecture.ts";
import { LayerStore } from "./images/layers.ts";
import { formatReference, parseReference, skopeoSource } from "./images/reference.ts";
import { type MachineVariables, skopeoVariables } from "./images/skopeo.ts";
import type { UnpackLimits } from "./images/unpack/limits.ts";
import { Images, storeFolders } from "./oci/images.ts";

/** The images of an engine, without the engine. */
export interface ImageStore extends AsyncDisposable {
  /** Whether sandboxes of the image start without a download. */
  has(image: string): Promise<boolean>;
  /** Downloads the image from its registry, if it is not there. */
  pull(image: string, signal: AbortSignal): Promise<void>;
  /** Takes the image from `docker-archive:PATH[:NAME]`, `oci:PATH[:NAME]` or `docker-daemon:NAME`. A registry is not asked. */
  load(image: string, source: string, signal: AbortSignal): Promise<void>;
  /**
   * Takes the image that `write` puts into an OCI layout under the name `image`. Layers that are there already have empty files in it: nobody
   * reads them, so nobody has to copy them.
   */
  receive?(image: string, write: (layout: string) => Promise<void>, signal: AbortSignal): Promise<void>;
}

export type ImageStoreOptions = {
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** For proxies, certificates and settings of skopeo. */
  readonly variables?: MachineVariables;
} & (
  | {
      readonly engine: "oci";
      /** The home of the engine. */
      readonly home: string;
      /** A store that engines share, if it is not in the home. */
      readonly folder?: string;
      /** The commands that use a store are the operator's, so every registry is allowed. */
      readonly insecureRegistries?: readonly string[];
      /** What unpacking an image may take; those of the server. */
      readonly unpackLimits?: Partial<UnpackLimits>;
      /** Of the daemon that `docker-daemon:NAME` means. */
      readonly dockerSocket?: string;
    }
  | { readonly engine: "docker"; readonly socket: string; readonly dockerSocket?: string }
);

export function openImageStore(options: ImageStoreOptions): ImageStore {
  return options.engine === "oci" ? openOci(options) : openDocker(options);
}

/** The full name of an image in a registry. Throws for what is no such name. */
export function imageName(text: string): string {
  const reference = parseReference(text);
  if (reference.from === "registry") return formatReference(reference);
  throw new PlatformError("request.invalid", `'${text}' is a place of an image and not a name, such as my-env:1.0.0`);
}

function openOci({ home, folder, ...access }: ImageStoreOptions & { readonly engine: "oci" }): ImageStore {
  const folders = storeFolders(join(home, "oci"), folder);
  const layers = new LayerStore(folders.store);
  const images = new Images({
    ...access,
    imageRegistries: "any",
    folder: folders.images,
    layers,
    architecture: process.arch as Architecture,
  });
  return {
    has: (image) => images.has(image),
    pull: async (image, signal) => void (await images.get(image, { pull: "missing", signal })),
    load: async (image, source, signal) => void (await images.load(image, source, signal)),
    receive: async (image, write, signal) => void (await images.receive(image, write, signal)),
    [Symbol.asyncDispose]: async () => {},
  };
}

function openDocker({ socket, authFile, variables, dockerSocket = socket }: ImageStoreOptions & { readonly engine: "docker" }): ImageStore {
  const api = new DockerApi(socket);
  const images = new DockerImages(api, { imageRegistries: "any", ...(authFile !== undefined && { authFile }) });
  return {
    has: async (image) => (await images.find(daemonName(image, parseReference(image)))) !== null,
    pull: async (image, signal) => void (await images.get(image, signal)),
    load: async (image, source, signal) => {
      const target = `docker-daemon:${formatReference(parseReference(image))}`;
      const from = parseReference(source);
      const access = from.from === "docker-daemon" ? ["--src-daemon-host", `unix://${dockerSocket}`] : [];
      const arguments_ = ["copy", "--quiet", ...access, "--dest-daemon-host", `unix://${socket}`, skopeoSource(from), target];
      await promisify(execFile)("skopeo", arguments_, { env: skopeoVariables(variables), signal }).catch((error: unknown) => {
        const reason = (error as { stderr?: string }).stderr?.trim().split("\n").at(-1) || messageOf(error);
        throw new PlatformError("sandbox.start_failed", `${source} could not be copied to the Docker daemon at ${socket}: ${reason}`);
      });
    },
    [Symbol.asyncDispose]: () => api.close(),
  };
}
