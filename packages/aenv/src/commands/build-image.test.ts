import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { initProgram } from "@aenv/sandbox";
import { describeNeeding, startImageRegistry, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { aenv } from "../testing/cli.ts";

const dockerfile = 'FROM scratch\nARG WHO\nLABEL who=$WHO\nCOPY notes.txt /\nCMD ["/serve"]\n';
const project = {
  "config.json": { name: "my-env", version: "1.0.0", artifacts: [{ type: "whl", content: "x.whl" }] },
  Dockerfile: dockerfile,
  "notes.txt": "notes",
};

describe("build --image", () => {
  it("names what to install if there is no builder", async () => {
    using tree = temporaryTree(project);
    const { code, stderr } = await aenv(["build", "--image"], { cwd: tree.path, env: { PATH: tree.path, HOME: tree.path } });
    expect(code).toBe(1);
    expect(stderr).toContain("there is no image builder here; none of buildx, docker, buildah, podman works");
    expect(stderr).toContain("Install Docker, buildah or podman");
  });

  for (const builder of ["buildah", "podman"] as const)
    describeNeeding(builder, `with ${builder}`, () => {
      describeNeeding("docker-registry", "and a registry", () => {
        it("builds, tags and pushes the image without a daemon", { timeout: 120_000 }, async () => {
          await using registry = await startImageRegistry();
          const { host, username, password } = registry;
          using tree = temporaryTree({
            ...project,
            // Runs a program, for which the builder makes a container.
            Dockerfile: `${dockerfile}COPY init /\nRUN ["/init", "--copy-to", "/copy"]\n`,
            ".aenv/cli_config.json": { build_config: { registry: { host, namespace: "team", username, password } } },
          });
          copyFileSync(await initProgram(process.arch as "x64" | "arm64"), join(tree.path, "init"));
          // vfs mounts nothing.
          tree.write({
            "storage.conf": `[storage]\ndriver = "vfs"\ngraphroot = "${tree.path}/images"\nrunroot = "${tree.path}/run"\n`,
          });
          const env = {
            PATH: process.env.PATH,
            HOME: tree.path,
            CONTAINERS_STORAGE_CONF: join(tree.path, "storage.conf"),
            // Not by crun, which refuses to start on machines with control groups of both versions.
            BUILDAH_ISOLATION: "chroot",
          };
          const argv = ["build", "--image", "--builder", builder, "--image-tag", "1.0.0", "--image-tag", "latest", "--push", "--json"];
          const { code, stdout, stderr } = await aenv([...argv, "--build-arg", "WHO=me"], { cwd: tree.path, env });
          expect(code, stderr).toBe(0);
          const image = `${host}/team/my-env:1.0.0`;
          expect(JSON.parse(stdout)).toMatchObject({ image, builder, pushed: true, id: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) });
          expect(await registry.tagsOf("team/my-env")).toEqual(["1.0.0", "latest"]);
          expect(JSON.parse(readFileSync(join(tree.path, "config.json"), "utf8")).artifacts).toContainEqual({
            id: "",
            type: "image",
            content: image,
          });
          // The steps of the builder are the progress.
          expect(stderr).toContain("COPY notes.txt /");
          expect(stdout + stderr).not.toContain(password);
        });
      });
    });
});
