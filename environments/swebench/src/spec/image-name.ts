import { PyError } from "@aenv/benchmark";

/** Architectures by their names in Docker. */
const ARCHITECTURES = {
  amd64: { inName: "x86_64", platform: "linux/amd64" },
  arm64: { inName: "arm64", platform: "linux/arm64/v8" },
} as const;

export type Architecture = keyof typeof ARCHITECTURES;

export interface ImageOptions {
  /** Without one, the name is that of an image that was built locally. */
  readonly namespace?: string | null;
  readonly architecture?: string;
  readonly tag?: string;
}

/** The name of the image with the repository and the dependencies of an instance. */
export function imageName(instanceId: string, { namespace = null, architecture = "amd64", tag = "latest" }: ImageOptions = {}): string {
  if (instanceId === "") throw new PyError("ValueError", "the instance id is empty");
  const { inName } = getArchitecture(architecture);
  if (namespace === "") throw new PyError("ValueError", "the namespace of images is empty: name one, or leave it out");
  const name = `sweb.eval.${inName}.${instanceId}:${tag}`;
  // Registries do not accept two underscores in a row.
  return (namespace === null ? name : `${namespace}/${name}`.replaceAll("__", "_1776_")).toLowerCase();
}

/** The platform of images, as Docker names it. */
export function imagePlatform(architecture: string): string {
  return getArchitecture(architecture).platform;
}

/** An image name that can be used as the name of a file. */
export function fileSafeImageName(name: string): string {
  return name.replaceAll(":", "__");
}

function getArchitecture(name: string): (typeof ARCHITECTURES)[Architecture] {
  if (Object.hasOwn(ARCHITECTURES, name)) return ARCHITECTURES[name as Architecture];
  throw new PyError("ValueError", `unknown architecture '${name}': use amd64 or arm64`);
}
