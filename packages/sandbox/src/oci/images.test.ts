import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Architecture } from "../engine/architecture.ts";
import { layerTar, writeLayout } from "../images/fixtures/layout.ts";
import { startRegistry } from "../images/fixtures/registry.ts";
import { LayerStore } from "../images/layers.ts";
import { readLayout } from "../images/layout.ts";
import { Images, type ImagesOptions } from "./images.ts";

const architecture = process.arch as Architecture;
const get = { pull: "missing", signal: AbortSignal.timeout(60_000) } as const;

const openImages = (folder: string, options: Partial<ImagesOptions> = {}) => {
  const layers = new LayerStore(folder);
  return { layers, images: new Images({ folder: join(folder, "images"), layers, architecture, ...options }) };
};

describe("an OCI layout", () => {
  it("tells the image's program", async () => {
    using home = temporaryTree();
    const config = {
      Entrypoint: ["/run"],
      Cmd: ["a"],
      Env: ["A=b=c", "broken"],
      User: "7:8",
      WorkingDir: "/w",
      ExposedPorts: { "80/tcp": {} },
      Labels: { l: "m" },
    };
    const digest = writeLayout(home.path, [], { config });
    expect(await readLayout(home.path, null, architecture)).toEqual({
      digest,
      layers: [],
      config: {
        entrypoint: ["/run"],
        command: ["/run", "a"],
        variables: ["A=b=c"],
        user: "7:8",
        workingDirectory: "/w",
        ports: ["80/tcp"],
        labels: { l: "m" },
      },
    });
  });

  it("is refused if it is not one, is for another machine, has no such image, or is damaged", async () => {
    using home = temporaryTree();
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("is not an OCI layout");
    writeLayout(home.path, [], { architecture: "riscv64" });
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("the image is for riscv64");
    const digest = writeLayout(home.path, []);
    await expect(readLayout(home.path, "other", architecture)).rejects.toThrow("no image with other");
    writeFileSync(join(home.path, "blobs/sha256", digest.slice(7)), "{}");
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("is damaged");
    writeFileSync(join(home.path, "index.json"), JSON.stringify({ manifests: [{ digest: "sha256:../../../etc/passwd" }] }));
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("is not a digest");
  });
});

describe("an OCI layout that is too large", () => {
  // Before: all of it was read and parsed in the server, whatever its size, and a record with all of it was read at each start.
  it.each<[string, object, string]>([
    ["a configuration", { config: { Cmd: ["x".repeat(4 * 2 ** 20)] } }, "bytes; at most 4 MiB are read"],
    ["variables, labels and arguments", { config: { Labels: { a: "x".repeat(2 ** 20) } } }, "bytes; at most 1 MiB are read"],
    ["arguments", { config: { Cmd: Array(2_001).fill("") } }, "it has 2001 arguments; at most 2000 are accepted"],
    ["variables", { config: { Env: Array(2_001).fill("A=b") } }, "it has 2001 variables; at most 2000"],
    ["labels", { config: { Labels: Object.fromEntries(Array.from({ length: 2_001 }, (_, at) => [at, ""])) } }, "it has 2001 labels"],
    ["ports", { config: { ExposedPorts: Object.fromEntries(Array.from({ length: 2_001 }, (_, at) => [at, {}])) } }, "it has 2001 ports"],
    ["depth", { config: { Cmd: JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`) } }, "nested deeper than 32 levels"],
    ["values", { config: { Volumes: Array(100_001).fill(0) } }, "more than 100000 values"],
    ["history", { history: Array(10_001).fill({}) }, "it has 10001 lines of history; at most 10000"],
  ])("is refused for its %s", async (_, options, problem) => {
    using home = temporaryTree();
    writeLayout(home.path, [], options);
    await expect(readLayout(home.path, null, architecture, "registry/name:1")).rejects.toMatchObject({
      code: "bundle.invalid",
      message: expect.stringMatching(new RegExp(`the image registry/name:1 cannot be (?:used|read): .*${problem}`)),
    });
  });

  it("is refused for its layers, and its index is not read either if that is too large", async () => {
    using home = temporaryTree();
    writeLayout(home.path, Array(257).fill({}));
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("it has 257 layers; at most 256 are accepted");
    writeFileSync(join(home.path, "index.json"), " ".repeat(4 * 2 ** 20 + 1));
    await expect(readLayout(home.path, null, architecture)).rejects.toThrow("its index.json has 4194305 bytes; at most 4 MiB are read");
  });
});

describeNeeding("overlay", "an image", () => {
  it("is unpacked from an OCI layout, with deletions in the form of overlayfs", async () => {
    using home = temporaryTree();
    const layout = join(home.path, "layout");
    writeLayout(layout, [
      { "etc/a": "1", "etc/b": "2" },
      { "etc/.wh.b": "", "etc/d": "3", "etc/c": { type: "hardlink", linkPath: "etc/d" } },
    ]);
    const { images, layers } = openImages(home.path);
    const image = await images.get(`oci:${layout}`, get);
    const [lower = "", upper = ""] = image.layers.map((id) => join(layers.folder, layers.filesOf(id)));
    expect(readFileSync(join(lower, "etc/a"), "utf8")).toBe("1");
    expect(lstatSync(join(upper, "etc/b")).isCharacterDevice()).toBe(true);
    expect(lstatSync(join(upper, "etc/b")).rdev).toBe(0);
    expect(lstatSync(join(upper, "etc/c")).ino).toBe(lstatSync(join(upper, "etc/d")).ino);
  });

  it("shares layers with other images", async () => {
    using home = temporaryTree();
    const base = { base: "shared" };
    writeLayout(join(home.path, "one"), [base, { one: "1" }]);
    writeLayout(join(home.path, "two"), [base, { two: "2" }]);
    const { images } = openImages(home.path);
    const [one, two] = await Promise.all(["one", "two"].map((name) => images.get(`oci:${join(home.path, name)}`, get)));
    expect(one?.layers[0]).toBe(two?.layers[0]);
    expect(one?.layers[1]).not.toBe(two?.layers[1]);
  });

  it("with a folder in the place of a link that leaves the image is refused, and the target of the link is not touched", async () => {
    using home = temporaryTree({ "outside/kept": "1" });
    chmodSync(join(home.path, "outside"), 0o700);
    const { images } = openImages(home.path);
    const link = { type: "symlink", linkPath: join(home.path, "outside") } as const;
    writeLayout(join(home.path, "layout"), [{ a: link, "./a": { type: "directory", mode: 0o777 }, "a/file": "2" }]);
    await expect(images.get(`oci:${home.path}/layout`, get)).rejects.toMatchObject({ code: "bundle.invalid" });
    expect([existsSync(join(home.path, "outside/file")), lstatSync(join(home.path, "outside")).mode & 0o777]).toEqual([false, 0o700]);
  });

  it("with a damaged or unsafe layer is refused, and nothing of that layer stays", async () => {
    using home = temporaryTree();
    const { images, layers } = openImages(home.path);
    const outside = join(home.path, "outside");
    writeLayout(join(home.path, "unsafe"), [{ link: { type: "symlink", linkPath: home.path }, "link/outside": "x" }]);
    await expect(images.get(`oci:${home.path}/unsafe`, get)).rejects.toThrow("unsafe layer: 'link/outside'");
    writeLayout(join(home.path, "damaged"), [{ file: "right" }]);
    const { layers: blobs } = await readLayout(join(home.path, "damaged"), null, architecture);
    writeFileSync(blobs[0]?.blob ?? "", layerTar({ file: "wrong" }));
    await expect(images.get(`oci:${home.path}/damaged`, get)).rejects.toThrow("the image is damaged");
    expect(existsSync(outside)).toBe(false);
    expect((await layers.collect(new Date(Date.now() + 60_000))).layers).toEqual([]);
  });

  it("of an archive cannot be read without skopeo, and the error says so", async () => {
    using home = temporaryTree();
    const { images } = openImages(home.path, { variables: { PATH: home.path } });
    await expect(images.get("docker-archive:/image.tar", get)).rejects.toThrow("install skopeo");
  });
});

describeNeeding("overlay", "an image of a registry with a password", () => {
  it("is pulled from a registry with credentials, once per digest, and again when its tag has changed", async () => {
    using home = temporaryTree();
    const layout = join(home.path, "layout");
    const digest = writeLayout(layout, [{ file: "1" }], { config: { Cmd: ["run"] } });
    await using registry = await startRegistry(layout, "me:secret");
    const authFile = join(home.path, "auth.json");
    writeFileSync(authFile, JSON.stringify({ auths: { [registry.host]: { auth: Buffer.from("me:secret").toString("base64") } } }));
    const access = { insecureRegistries: [registry.host] };
    await expect(openImages(home.path, access).images.get(`${registry.host}/ns/name`, get)).rejects.toThrow(
      `the image '${registry.host}/ns/name:latest' could not be pulled: its registry does not have it, or wants other credentials`,
    );

    const { images } = openImages(home.path, { ...access, authFile });
    const first = await images.get(`${registry.host}/ns/name`, get);
    expect(first.config.command).toEqual(["run"]);
    expect(first.sourceDigest).toBe(digest);
    const asked = registry.requests.length;
    expect(await images.get(`${registry.host}/ns/name`, get)).toEqual(first);
    expect(registry.requests.length).toBe(asked);
    expect(await images.get(`${registry.host}/ns/name`, { ...get, pull: "always" })).toEqual(first);
    expect(registry.requests.slice(asked).filter((path) => path.includes("/blobs/"))).toEqual([]);

    writeLayout(layout, [{ file: "1" }, { file: "2" }]);
    const second = await images.get(`${registry.host}/ns/name`, { ...get, pull: "always" });
    expect(second.layers).toHaveLength(2);
    expect(second.layers[0]).toBe(first.layers[0]);
    const pinned = await images.get(`${registry.host}/ns/name:latest@${digest}`, get);
    expect(pinned.layers).toEqual(first.layers);
  });

  it("is not pulled with credentials of the user of this process", async () => {
    using home = temporaryTree();
    const layout = join(home.path, "layout");
    writeLayout(layout, [{ file: "1" }]);
    await using registry = await startRegistry(layout, "me:secret");
    const own = JSON.stringify({ auths: { [registry.host]: { auth: Buffer.from("me:secret").toString("base64") } } });
    home.write({ "auth.json": own, "user/.docker/config.json": own, "run/containers/auth.json": own });
    const variables = {
      REGISTRY_AUTH_FILE: join(home.path, "auth.json"),
      XDG_RUNTIME_DIR: join(home.path, "run"),
      HOME: join(home.path, "user"),
    };
    const { images } = openImages(home.path, { insecureRegistries: [registry.host], variables });
    await expect(images.get(`${registry.host}/ns/name`, get)).rejects.toThrow("could not be pulled");
    expect(registry.requests).toEqual([]);
  });
});

describeNeeding("skopeo", "an image that skopeo reads", () => {
  it("is read without the secrets of this process", async () => {
    using home = temporaryTree();
    home.write({ "bin/skopeo": `#!/bin/sh\nenv > ${home.path}/variables\nexit 1\n` });
    chmodSync(join(home.path, "bin/skopeo"), 0o755);
    const variables = {
      HOME: "/root",
      A_SECRET: "of the server",
      REGISTRY_AUTH_FILE: "/auth.json",
      PATH: `${home.path}/bin:${process.env.PATH}`,
    };
    await expect(openImages(home.path, { variables }).images.get("docker-archive:/image.tar", get)).rejects.toThrow("could not be read");
    const lines = readFileSync(join(home.path, "variables"), "utf8").split("\n");
    const names = lines.map((line) => line.split("=")[0]);
    expect(names).toContain("HOME");
    for (const name of ["A_SECRET", "REGISTRY_AUTH_FILE"]) expect(names).not.toContain(name);
  });

  it("is read from an archive of docker", async () => {
    using home = temporaryTree();
    writeLayout(join(home.path, "layout"), [{ file: "1" }], { config: { Cmd: ["run"] } });
    const archive = join(home.path, "image.tar");
    execFileSync("skopeo", ["copy", "--quiet", `oci:${home.path}/layout:image`, `docker-archive:${archive}:name:tag`]);
    const { images, layers } = openImages(home.path);
    const image = await images.get(`docker-archive:${archive}`, get);
    expect(image.config.command).toEqual(["run"]);
    expect(readFileSync(join(layers.folder, layers.filesOf(image.layers[0] ?? ""), "file"), "utf8")).toBe("1");
  });
});
