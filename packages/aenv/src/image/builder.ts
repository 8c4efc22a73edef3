import { probeProgram } from "@aenv/sandbox";

/** Programs that build images, in the order in which they are chosen: BuildKit, the classic builder of Docker, and those without a daemon. */
export const builderNames = ["buildx", "docker", "buildah", "podman"] as const;
export type BuilderName = (typeof builderNames)[number];

type Variables = Readonly<Record<string, string | undefined>>;

/** The builders that work on this machine, the best first. Those of Docker count only if its engine answers. */
export async function findBuilders(env: Variables): Promise<readonly BuilderName[]> {
  const works = async (program: string, ...args: string[]) => (await probeProgram(program, args, env)).ok;
  const [engine, buildx, buildah, podman] = await Promise.all([
    works("docker", "version", "--format", "{{.Server.Version}}"),
    works("docker", "buildx", "version"),
    works("buildah", "--version"),
    works("podman", "--version"),
  ]);
  const found = { buildx: engine && buildx, docker: engine, buildah, podman };
  return builderNames.filter((name) => found[name]);
}
