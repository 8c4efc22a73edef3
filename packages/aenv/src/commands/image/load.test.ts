import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, temporaryTree, writeSmallImage } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";
import { openOciImages } from "../../testing/images.ts";

describe("image load", () => {
  it("asks for the name of an image that its source does not name", async () => {
    using tree = temporaryTree({ "image.tar": "" });
    const { code, stderr } = await aenv(["image", "load", "image.tar"], { cwd: tree.path, env: { AENV_HOME: tree.path } });
    expect([code, stderr]).toEqual([2, expect.stringContaining("image.tar does not say the name of the image")]);
    expect(stderr).toContain("aenv image load image.tar --name my-env:1.0.0");
  });

  it("says what may be loaded if there is no such file", async () => {
    using tree = temporaryTree();
    const { code, stderr } = await aenv(["image", "load", "nowhere.tar", "--name", "a:1"], { cwd: tree.path });
    expect([code, stderr]).toEqual([2, expect.stringContaining(`there is no ${join(tree.path, "nowhere.tar")}`)]);
    expect(stderr).toContain("docker-daemon:NAME");
  });

  describeNeeding("skopeo", "with skopeo", () => {
    it("takes an archive and an OCI layout into the store of a home, or into a shared one", { timeout: 60_000 }, async () => {
      using tree = temporaryTree();
      await writeSmallImage(tree.path, {});
      const home = join(tree.path, "home");
      const folder = join(tree.path, "shared");
      const load = async (...argv: string[]) => {
        const { code, stdout, stderr } = await aenv(["image", "load", ...argv, "--home", home, "--json"], { cwd: tree.path });
        expect(code, stderr).toBe(0);
        return JSON.parse(stdout);
      };
      expect(await load("image.tar", "--name", "one:1")).toMatchObject({ image: "docker.io/library/one:1", engine: "oci", place: home });
      await promisify(execFile)("skopeo", ["copy", "--quiet", "docker-archive:image.tar", "oci:layout:two"], { cwd: tree.path });
      const two = await load("oci:layout:two", "--image-store", folder);
      expect(two).toMatchObject({ image: "docker.io/library/two:latest", place: folder });
      await using own = await openOciImages({ home });
      await using shared = await openOciImages({ home, imageStore: folder });
      expect([await own.has("one:1"), await own.has("two"), await shared.has("two")]).toEqual([true, false, true]);
    });
  });
});
