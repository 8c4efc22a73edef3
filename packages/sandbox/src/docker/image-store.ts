import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf, PlatformError } from "@aenv/contract";
import type { ImageAccess, ImageStore } from "../engine/kind.ts";
import { formatReference, parseReference, skopeoSource } from "../images/reference.ts";
import { skopeoVariables } from "../images/skopeo.ts";
import { DockerApi } from "./api.ts";
import { DockerImages, daemonName } from "./images.ts";

/** The settings of the server that the images depend on. */
export interface DockerImageSettings {
  readonly dockerSocket: string;
  readonly registryAuth: string | null;
}

export function openImages({ dockerSocket: socket, registryAuth }: DockerImageSettings, access: ImageAccess): ImageStore {
  const api = new DockerApi(socket);
  const images = new DockerImages(api, { imageRegistries: "any", ...(registryAuth !== null && { authFile: registryAuth }) });
  return {
    place: `the Docker daemon at ${socket}`,
    has: async (image) => (await images.find(daemonName(image, parseReference(image)))) !== null,
    pull: async (image, signal) => void (await images.get(image, signal)),
    load: async (image, source, signal) => {
      const target = `docker-daemon:${formatReference(parseReference(image))}`;
      const from = parseReference(source);
      const host = from.from === "docker-daemon" ? ["--src-daemon-host", `unix://${access.daemonSocket ?? socket}`] : [];
      const arguments_ = ["copy", "--quiet", ...host, "--dest-daemon-host", `unix://${socket}`, skopeoSource(from), target];
      await promisify(execFile)("skopeo", arguments_, { env: skopeoVariables(access.variables), signal }).catch((error: unknown) => {
        const reason = (error as { stderr?: string }).stderr?.trim().split("\n").at(-1) || messageOf(error);
        throw new PlatformError("sandbox.start_failed", `${source} could not be copied to the Docker daemon at ${socket}: ${reason}`);
      });
    },
    [Symbol.asyncDispose]: () => api.close(),
  };
}
