import { execFileSync } from "node:child_process";
import { createReadStream, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { unpackFolder } from "./archive.ts";

const MIB = 2 ** 20;
const signal = AbortSignal.timeout(60_000);

describeNeeding("tmpfs", "the files of a snapshot", () => {
  // Before: they were unpacked until nothing could be written on the disk any more.
  it("are unpacked while the disk keeps its reserve, and a part may be refused while it comes", async () => {
    using home = temporaryTree({ "files/large": "\0".repeat(60 * MIB), "disk/README": "" });
    execFileSync("tar", ["--create", `--file=${home.path}/large.tar`, `--directory=${home.path}/files`, "."]);
    const disk = join(home.path, "disk");
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", disk]);
    try {
      const options = { signal, freeDiskBytes: 24 * MIB };
      const large = () => createReadStream(join(home.path, "large.tar"));
      await expect(unpackFolder(large(), disk, options)).rejects.toMatchObject({
        code: "sandbox.no_capacity",
        message: expect.stringContaining("less than 24 MiB left"),
      });
      const { bavail, bsize } = statfsSync(disk);
      expect(bavail * bsize).toBeGreaterThan(16 * MIB);
      await expect(unpackFolder(join(home.path, "large.tar"), disk, { signal, freeDiskBytes: 60 * MIB })).rejects.toThrow("60 MiB left");
      execFileSync("find", [disk, "-mindepth", "1", "-delete"]);
      let bytes = 0;
      const onBytes = (count: number) => {
        bytes += count;
        if (bytes > 8 * MIB) throw new Error("too large");
      };
      await expect(unpackFolder(large(), disk, { ...options, onBytes })).rejects.toThrow("too large");
      expect(readdirSync(disk)).toEqual(["large"]);
    } finally {
      execFileSync("umount", [disk]);
    }
  });
});
