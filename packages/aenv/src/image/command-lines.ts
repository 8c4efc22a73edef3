import type { BuilderName } from "./builder.ts";
import type { ImagePlan } from "./plan.ts";

/** One program to run. */
export interface CommandLine {
  readonly program: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** An image for several platforms is a list of images, which Docker stores only in a registry. */
export function isBuiltIntoRegistry({ platforms }: ImagePlan): boolean {
  return platforms.length > 1;
}

/** The command that builds the image; with BuildKit and several platforms it also pushes it. */
export function buildCommand(builder: BuilderName, plan: ImagePlan, dockerfile: string, context: string): CommandLine {
  const args = [
    ...plan.references.flatMap((reference) => ["--tag", reference]),
    ...Object.entries(plan.buildArgs).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
    ...(plan.platforms.length > 0 ? ["--platform", plan.platforms.join(",")] : []),
    "--file",
    dockerfile,
    context,
  ];
  switch (builder) {
    case "buildx": {
      const output = isBuiltIntoRegistry(plan) ? "--push" : "--load";
      return { program: "docker", args: ["buildx", "build", "--progress=plain", output, ...args], variables: {} };
    }
    case "docker":
      // Without the plugin buildx, BuildKit would stop.
      return { program: "docker", args: ["build", "--force-rm", ...args], variables: { DOCKER_BUILDKIT: "0" } };
    // Otherwise, the container of a step that failed would stay, and its mount.
    case "buildah":
      return { program: "buildah", args: ["bud", "--layers", "--force-rm", ...args], variables: {} };
    case "podman":
      return { program: "podman", args: ["build", "--force-rm", ...args], variables: {} };
  }
}

export function pushCommand(builder: BuilderName, reference: string): CommandLine {
  if (builder === "buildx" || builder === "docker") return { program: "docker", args: ["push", reference], variables: {} };
  // Docker allows HTTP for registries on loopback without being asked.
  const insecure = LOOPBACK.test(reference) ? ["--tls-verify=false"] : [];
  return { program: builder, args: ["push", ...insecure, reference], variables: {} };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\//;

/** Writes the image as a file. */
export function saveCommand(builder: BuilderName, reference: string, file: string): CommandLine {
  if (builder === "buildah") return { program: "buildah", args: ["push", reference, `docker-archive:${file}:${reference}`], variables: {} };
  const format = builder === "podman" ? ["--format", "docker-archive"] : [];
  return { program: pushCommand(builder, reference).program, args: ["save", ...format, "--output", file, reference], variables: {} };
}

/**
 * Writes an image of buildah or podman into an OCI layout as `image`. Unlike the builders themselves, skopeo does not compress layers on this way,
 * which would take longer than all the rest. A layer whose file is there is not copied.
 */
export function layoutCommand(id: string, layout: string): CommandLine {
  const source = `containers-storage:@${id.replace("sha256:", "")}`;
  return {
    program: "skopeo",
    args: ["copy", "--quiet", "--dest-oci-accept-uncompressed-layers", source, `oci:${layout}:image`],
    variables: {},
  };
}

/** Prints the id of the image. */
export function idCommand(builder: BuilderName, reference: string): CommandLine {
  return builder === "buildah"
    ? { program: "buildah", args: ["inspect", "--type", "image", "--format", "{{.FromImageID}}", reference], variables: {} }
    : { program: pushCommand(builder, reference).program, args: ["image", "inspect", "--format", "{{.Id}}", reference], variables: {} };
}
