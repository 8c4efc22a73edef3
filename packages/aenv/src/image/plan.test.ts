import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withImageArtifact } from "./artifact.ts";
import { buildCommand, idCommand, pushCommand } from "./command-lines.ts";
import { type ImageOptions, type ImagePlan, planImage, type RegistrySettings } from "./plan.ts";

const config = { name: "my-env", version: "1.2.0" };

function plan(
  options: ImageOptions = {},
  { settings = {} as RegistrySettings, buildConfig = {}, files = ["/p/Dockerfile"] } = {},
): ImagePlan {
  return planImage({ root: "/p", config: { ...config, buildConfig }, options, settings, exists: (path) => files.includes(path) });
}

describe("the plan of an image", () => {
  it("is named after the environment and its version", () => {
    expect(plan()).toEqual({
      references: ["docker.io/my-env:1.2.0"],
      registry: "docker.io",
      dockerfile: "/p/Dockerfile",
      context: "/p",
      platforms: [],
      buildArgs: {},
      isPushed: false,
    });
  });

  it("takes the command line before config.json before the settings", () => {
    const settings = { host: "docker.io", namespace: "aenv" };
    const buildConfig = { image_name: "shop", image_tag: "stable" };
    expect(plan({}, { settings, buildConfig }).references).toEqual(["docker.io/aenv/shop:stable"]);
    const options = { registry: "ghcr.io", namespace: "a/b", imageName: "other", imageTag: ["1", "latest", "1"] };
    expect(plan(options, { settings, buildConfig }).references).toEqual(["ghcr.io/a/b/other:1", "ghcr.io/a/b/other:latest"]);
  });

  it("uses the Dockerfile and the context that config.json names", () => {
    const buildConfig = { dockerfile: "./docker/env.Dockerfile", context: "docker" };
    const found = plan({}, { buildConfig, files: ["/p/docker/env.Dockerfile"] });
    expect([found.dockerfile, found.context]).toEqual(["/p/docker/env.Dockerfile", "/p/docker"]);
  });

  it("has no Dockerfile if the project has none, unless the command line names one", () => {
    expect(plan({}, { files: [] }).dockerfile).toBeNull();
    expect(() => plan({ dockerfile: "missing" }, { files: [] })).toThrow("there is no /p/missing");
  });

  it.each([
    [{ imageName: "My Env" }, "the image name 'My Env' is not valid"],
    [{ imageTag: ["a b"] }, "the tag 'a b' is not valid"],
    [{ registry: "https://ghcr.io" }, "the registry 'https://ghcr.io' is not valid"],
    [{ platform: "arm64" }, "the platform 'arm64' is not valid"],
  ])("refuses %j", (options, message) => {
    expect(() => plan(options)).toThrow(message);
  });
});

describe("the command line of a builder", () => {
  const one = plan({ imageTag: ["1", "2"], platform: "linux/arm64", buildArg: { WHO: "me" } });
  const args = [
    "--tag",
    "docker.io/my-env:1",
    "--tag",
    "docker.io/my-env:2",
    "--build-arg",
    "WHO=me",
    "--platform",
    "linux/arm64",
    "--file",
    "D",
    "C",
  ];

  it.each([
    ["buildx", "docker", ["buildx", "build", "--progress=plain", "--load"]],
    ["docker", "docker", ["build", "--force-rm"]],
    ["buildah", "buildah", ["bud", "--layers", "--force-rm"]],
    ["podman", "podman", ["build", "--force-rm"]],
  ] as const)("of %s has all tags, arguments and the platform", (builder, program, first) => {
    expect(buildCommand(builder, one, "D", "C")).toMatchObject({ program, args: [...first, ...args] });
    expect(pushCommand(builder, "x:1")).toMatchObject({ program, args: ["push", "x:1"] });
    expect(idCommand(builder, "x:1").program).toBe(program);
  });

  it.each([
    ["buildah", "127.0.0.1:5000/a:1", ["push", "--tls-verify=false", "127.0.0.1:5000/a:1"]],
    ["podman", "localhost/a:1", ["push", "--tls-verify=false", "localhost/a:1"]],
    ["podman", "localhost.example.org/a:1", ["push", "localhost.example.org/a:1"]],
    ["docker", "127.0.0.1:5000/a:1", ["push", "127.0.0.1:5000/a:1"]],
  ] as const)("of %s allows HTTP for a registry on loopback only: %s", (builder, reference, args) => {
    expect(pushCommand(builder, reference).args).toEqual(args);
  });

  it("pushes an image for several platforms at once, because Docker cannot store it", () => {
    expect(buildCommand("buildx", plan({ platform: "linux/arm64,linux/amd64", push: true }), "D", "C").args).toContain("--push");
  });
});

describe("the image in config.json", () => {
  const image = (text: string) => JSON.parse(text).artifacts.filter(({ type }: { type: string }) => type === "image");

  it("is added or replaced, and all else stays, also the format", () => {
    const text = '{\n    "name": "a",\n    "tags": ["x", "y"],\n    "version": "1.0.0"\n}\n';
    const added = withImageArtifact(text, { image: "a:1", port: null });
    expect(added.startsWith('{\n    "name": "a",\n    "tags": ["x", "y"],\n    "version": "1.0.0",\n    "artifacts": [\n')).toBe(true);
    expect(added.replace('"a:1"', '"a:2"')).toBe(withImageArtifact(added, { image: "a:2", port: null }));
  });

  it("is written with the port of its server, beside other fields of deployConfig", () => {
    const after = withImageArtifact('{ "name": "a", "deployConfig": { "cpu": "2" } }', { image: "a:1", port: 8081 });
    expect(JSON.parse(after).deployConfig).toEqual({ cpu: "2", port: 8081 });
  });

  it("is one, whatever the artifacts were", () => {
    const artifact = fc.record({ type: fc.constantFrom("whl", "image", "bundle"), content: fc.string() });
    fc.assert(
      fc.property(fc.uniqueArray(artifact, { selector: ({ type }) => type }), fc.integer({ min: 0, max: 8 }), (artifacts, indent) => {
        const before = { name: "a", artifacts, version: "1.0.0" };
        const after = withImageArtifact(JSON.stringify(before, null, indent), { image: "r/a:1", port: null });
        expect(image(after)).toEqual([expect.objectContaining({ content: "r/a:1" })]);
        const others = (list: readonly { type: string }[]) => list.filter(({ type }) => type !== "image");
        expect(others(JSON.parse(after).artifacts)).toEqual(others(artifacts));
      }),
    );
  });
});
