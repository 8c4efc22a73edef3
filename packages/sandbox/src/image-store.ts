import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf, PlatformError } from "@aenv/contract";
import { DockerApi } from "./docker/api.ts";
import { DockerImages, daemonName } from "./docker/images.ts";
import { Images, imagesFolder } from "./oci/images/images.ts";
import { LayerStore } from "./oci/images/layers.ts";
import { formatReference, parseReference, skopeoSource } from "./oci/images/reference.ts";
import { type MachineVariables, skopeoVariables } from "./oci/images/skopeo.ts";
import type { Architecture } from "./oci/spec/seccomp.ts";

/** The images of an engine, without the engine. */
export interface ImageStore extends AsyncDisposable {
  /** Whether sandboxes of the image start without a download. */
  has(image: string): Promise<boolean>;
  /** Downloads the image from its registry, if it is not there. */
  pull(image: string, signal: AbortSignal): Promise<void>;
  /** Takes the image from `docker-archive:PATH[:NAME]`, `oci:PATH[:NAME]` or `docker-daemon:NAME`. A registry is not asked. */
  load(image: string, source: string, signal: AbortSignal): Promise<void>;
}

export type ImageStoreOptions = {
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** For proxies, certificates and settings of skopeo. */
  readonly variables?: MachineVariables;
} & (
  | { readonly engine: "oci"; readonly folder: string; readonly insecureRegistries?: readonly string[] }
  | { readonly engine: "docker"; readonly socket: string }
);

export function openImageStore(options: ImageStoreOptions): ImageStore {
  return options.engine === "oci" ? openOci(options) : openDocker(options);
}

function openOci({ folder, ...access }: ImageStoreOptions & { readonly engine: "oci" }): ImageStore {
  const layers = new LayerStore(folder);
  const images = new Images({ ...access, folder: imagesFolder(folder), layers, architecture: process.arch as Architecture });
  return {
    has: (image) => images.has(image),
    pull: async (image, signal) => void (await images.get(image, { pull: "missing", signal })),
    load: async (image, source, signal) => void (await images.load(image, source, signal)),
    [Symbol.asyncDispose]: async () => {},
  };
}

function openDocker({ socket, authFile, variables }: ImageStoreOptions & { readonly engine: "docker" }): ImageStore {
  const api = new DockerApi(socket);
  const images = new DockerImages(api, authFile === undefined ? {} : { authFile });
  return {
    has: async (image) => (await images.find(daemonName(image, parseReference(image)))) !== null,
    pull: async (image, signal) => void (await images.get(image, signal)),
    load: async (image, source, signal) => {
      const target = `docker-daemon:${formatReference(parseReference(image))}`;
      const from = skopeoSource(parseReference(source));
      const arguments_ = ["copy", "--quiet", "--dest-daemon-host", `unix://${socket}`, from, target];
      await promisify(execFile)("skopeo", arguments_, { env: skopeoVariables(variables), signal }).catch((error: unknown) => {
        const reason = (error as { stderr?: string }).stderr?.trim().split("\n").at(-1) || messageOf(error);
        throw new PlatformError("sandbox.start_failed", `${source} could not be copied to the Docker daemon at ${socket}: ${reason}`);
      });
    },
    [Symbol.asyncDispose]: () => api.close(),
  };
}
