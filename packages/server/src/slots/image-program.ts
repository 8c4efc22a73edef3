import { PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxSpec } from "@aenv/sandbox";
import { isImageReference } from "../hub/datasource.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";

/** What a sandbox runs instead of the runner: the image's own server, or only the commands of the owner. */
export type ImageProgram = Required<Pick<SandboxSpec, "image" | "command" | "listening">>;

/** The program of an environment that was published as an image; null if it has a bundle. An environment that cannot run here is an error. */
export function imageProgramOf(environment: EnvironmentVersion, engine: Pick<SandboxEngine, "name" | "can">): ImageProgram | null {
  const { bundleDigest, artifacts, config, name, version } = environment;
  if (bundleDigest !== null) return null;
  const unsupported = (why: string) => new PlatformError("instance.unsupported", `${name}@${version} ${why}`);
  const image = artifacts.find(({ type }) => type === "image")?.content;
  if (image === undefined) throw unsupported("has neither a bundle nor an image; publish it with 'aenv push' from its project");
  if (!engine.can.images)
    throw unsupported(
      `is an image, which the engine '${engine.name}' of this server cannot run; start the server with --engine oci or docker`,
    );
  // Not a file of the server, nor an image of its Docker.
  if (!isImageReference(image))
    throw unsupported(`names the image '${image}', which is not a name in a registry, such as host/team/name:tag`);
  const port = config.deployConfig?.service?.port ?? config.deployConfig?.port;
  const listening = port === undefined ? ({ kind: "none" } as const) : ({ kind: "port", port, healthPath: "/health" } as const);
  return { image, command: [], listening };
}
