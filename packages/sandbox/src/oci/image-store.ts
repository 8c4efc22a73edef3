import { join } from "node:path";
import type { Architecture } from "../engine/architecture.ts";
import type { ImageAccess, ImageStore } from "../engine/kind.ts";
import { LayerStore } from "../images/layers.ts";
import type { UnpackLimits } from "../images/unpack/limits.ts";
import { Images, storeFolders } from "./images.ts";

/** The settings of the server that the images depend on. */
export interface OciImageSettings {
  readonly home: string;
  readonly imageStore: string | null;
  readonly registryAuth: string | null;
  readonly insecureRegistries: readonly string[];
  readonly imageBytes: number;
  readonly imageEntries: number;
  readonly minFreeDisk: number | null;
}

export function openImages(settings: OciImageSettings, { variables, daemonSocket }: ImageAccess): ImageStore {
  const { home, imageStore, registryAuth, insecureRegistries } = settings;
  const folders = storeFolders(join(home, "oci"), imageStore ?? undefined);
  const images = new Images({
    insecureRegistries,
    unpackLimits: unpackLimits(settings),
    ...(registryAuth !== null && { authFile: registryAuth }),
    ...(variables !== undefined && { variables }),
    ...(daemonSocket !== undefined && { dockerSocket: daemonSocket }),
    // The commands that use a store are the operator's, so every registry is allowed.
    imageRegistries: "any",
    folder: folders.images,
    layers: new LayerStore(folders.store),
    architecture: process.arch as Architecture,
  });
  return {
    place: imageStore ?? home,
    has: (image) => images.has(image),
    pull: async (image, signal) => void (await images.get(image, { pull: "missing", signal })),
    load: async (image, source, signal) => void (await images.load(image, source, signal)),
    receive: async (image, write, signal) => void (await images.receive(image, write, signal)),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** What unpacking an image may take. */
export function unpackLimits({ imageBytes, imageEntries, minFreeDisk }: OciImageSettings): Partial<UnpackLimits> {
  return { imageBytes, imageEntries, freeDiskBytes: minFreeDisk };
}
