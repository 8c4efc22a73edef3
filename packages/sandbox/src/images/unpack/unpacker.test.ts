import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, missing, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import type { Architecture } from "../../engine/architecture.ts";
import { Images, type ImagesOptions } from "../../oci/images.ts";
import { type LayerFiles, writeLayout } from "../fixtures/layout.ts";
import { LayerStore } from "../layers.ts";
import { readLayout } from "../layout.ts";
import type { UnpackLimits } from "./limits.ts";

const architecture = process.arch as Architecture;
const get = { pull: "missing", signal: AbortSignal.timeout(120_000) } as const;
const MIB = 2 ** 20;

/** Layouts, and what is unpacked of them: in two folders, so that nothing that is left is overlooked. */
function open(folder: string, limits: Partial<UnpackLimits>, options: Partial<ImagesOptions> = {}) {
  const layers = new LayerStore(join(folder, "store"));
  const images = new Images({ folder: join(folder, "images"), layers, architecture, unpackLimits: limits, ...options });
  return {
    layers,
    pull: (name: string, files: readonly LayerFiles[]) => {
      writeLayout(join(folder, name), files);
      return images.get(`oci:${join(folder, name)}`, get);
    },
    get: (name: string) => images.get(`oci:${join(folder, name)}`, get),
    left: () => [...readdirSync(layers.folder), ...readdirSync(join(folder, "images"))],
  };
}

const zeros = (megabytes: number): LayerFiles => ({ zeros: "\0".repeat(megabytes * MIB) });
const files = (prefix: string, count: number): LayerFiles =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, ""]));

// Before: 448 bytes of heap per entry in the server, and 64 GiB from 2 MB.
describeNeeding("overlay", "an image that takes more than it may", () => {
  it.each<[string, Partial<UnpackLimits>, readonly LayerFiles[], string]>([
    ["entries of a layer", { layerEntries: 20 }, [{ one: "" }, files("a", 21)], "it has more than 20 files, folders and links"],
    ["folders that a path implies", { layerEntries: 20 }, [{ one: "" }, { [`${"d/".repeat(21)}f`]: "" }], "more than 20 files"],
    [
      "entries of all layers",
      { imageEntries: 30, layerEntries: 20 },
      [files("a", 16), files("b", 16)],
      "more than 30 files, folders and links",
    ],
    ["bytes of a layer", { layerBytes: MIB }, [{ one: "" }, zeros(1)], "it has more than 1 MiB"],
    [
      "bytes of all layers",
      { imageBytes: 3 * MIB, layerBytes: 2 * MIB },
      [zeros(1), { two: "2".repeat(MIB) }, { three: "3".repeat(MIB) }],
      "more than 3 MiB together",
    ],
    ["zeros", { freeOfRatioBytes: MIB }, [{ one: "" }, zeros(2)], "more than 200 times as large as its compressed form"],
    [
      "zeros in many layers",
      { freeOfRatioBytes: 2 * MIB },
      [
        { ...zeros(1), a: "" },
        { ...zeros(1), b: "" },
        { ...zeros(1), c: "" },
      ],
      "more than 200 times as large",
    ],
    [
      "names and attributes",
      { layerTextBytes: 2_000 },
      [{ one: "" }, { file: { attributes: { "user.a": "x".repeat(2_000) } } }],
      "its paths and attributes have more than 2000 B",
    ],
    ["the length of a path", {}, [{ one: "" }, { ["d/".repeat(2_048)]: { type: "directory" } }], "a path of more than 4095 bytes"],
    [
      "the target of a link",
      {},
      [{ one: "" }, { link: { type: "symlink", linkPath: "x".repeat(4_096) } }],
      "a path of more than 4095 bytes",
    ],
    ["the depth of a path", {}, [{ one: "" }, { [`${"d/".repeat(257)}f`]: "" }], "a path of more than 256 folders"],
  ])("is refused for %s, and nothing of it stays", async (_, limits, layers, problem) => {
    using home = temporaryTree();
    const { pull, left } = open(home.path, limits);
    const error = await pull("large", layers).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "bundle.invalid", message: expect.stringContaining(problem) });
    expect(error).toMatchObject({
      message: expect.stringMatching(new RegExp(`the image oci:${home.path}/large .* layer sha256:[0-9a-f]{64}`)),
    });
    expect(left()).toEqual([]);
  });

  it("does not disturb other pulls, nor take away a layer that another image has", async () => {
    using home = temporaryTree();
    const shared = { "etc/shared": "1" };
    const { pull, layers } = open(home.path, { layerEntries: 50 });
    writeLayout(join(home.path, "good"), [shared, { good: "" }]);
    const [large, good] = await Promise.allSettled([pull("large", [shared, files("a", 60)]), pull("good", [shared, { good: "" }])]);
    expect(large).toMatchObject({ status: "rejected", reason: { code: "bundle.invalid" } });
    const image = good.status === "fulfilled" ? good.value : null;
    await layers.use("sandbox", image?.layers ?? []);
    expect(readdirSync(layers.folder)).toHaveLength(2);
    await expect(pull("large", [shared, files("a", 60)])).rejects.toThrow("more than 50 files");
    expect(image?.layers.every((id) => layers.has(id))).toBe(true);
  });

  it("is unpacked with much of zeros in small layers", async () => {
    using home = temporaryTree();
    expect((await open(home.path, {}).pull("zeros", [zeros(64)])).layers).toHaveLength(1);
  });

  it("takes its memory in a process of its own, which may use no more than its limit", async () => {
    using home = temporaryTree();
    const { left, get } = open(home.path, { heapMb: 16 });
    writeLayout(join(home.path, "good"), [{ good: "" }]);
    const folder = Array.from({ length: 15 }, () => "d".repeat(250)).join("/");
    writeLayout(join(home.path, "large"), [files(`${folder}/`, 8_000)]);
    const before = process.memoryUsage().heapUsed;
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, process.memoryUsage().heapUsed);
    }, 5);
    const [large, good] = await Promise.allSettled([get("large"), get("good")]);
    clearInterval(sampling);
    expect(large).toMatchObject({
      status: "rejected",
      reason: { code: "bundle.invalid", message: expect.stringContaining("needs more than 16 MiB of memory") },
    });
    expect(good.status).toBe("fulfilled");
    // Before: 40 MB and more, which stayed until the end of the layer.
    expect(most - before).toBeLessThan(15 * MIB);
    expect(left()).toHaveLength(2);
  });

  it("is unpacked without variables and network of this process, and its pull ends with all of its processes", async () => {
    using home = temporaryTree();
    // Only one process has this number among its arguments.
    const imageEntries = 1_000_000_000 + process.pid;
    const { get, left } = open(home.path, { imageEntries, heapMb: 64 }, { pullTimeoutMs: 5_000 });
    writeLayout(join(home.path, "slow"), [{ file: "content" }]);
    const [{ blob = "" } = {}] = (await readLayout(join(home.path, "slow"), null, architecture)).layers;
    // A content that never comes.
    rmSync(blob);
    execFileSync("mkfifo", [blob]);
    const pulling = get("slow").then(
      () => "unpacked",
      (error: unknown) => error,
    );
    await expect.poll(() => processesWith(String(imageEntries)), { timeout: 4_000 }).toHaveLength(1);
    const [pid = ""] = processesWith(String(imageEntries));
    expect(
      readFileSync(`/proc/${pid}/environ`, "utf8")
        .split("\0")
        .filter((line) => line !== "")
        .map((line) => line.split("=")[0]),
    ).toEqual(["PATH"]);
    if (missing("network-namespaces") === null) {
      const devices = readFileSync(`/proc/${pid}/net/dev`, "utf8")
        .split("\n")
        .slice(2)
        .filter((line) => line !== "");
      expect(devices.map((line) => line.split(":")[0]?.trim())).toEqual(["lo"]);
    }
    expect(await pulling).toMatchObject({ code: "sandbox.start_failed", message: expect.stringContaining("its pull took too long") });
    expect(processesWith(String(imageEntries))).toEqual([]);
    expect(left()).toEqual([]);
  });
});

describeNeeding("tmpfs", "a disk that is almost full", () => {
  // Before: a layer was unpacked until nothing could be written on the disk any more.
  it("keeps its reserve while a layer is unpacked, and the layer is removed", async () => {
    using home = temporaryTree({ "store/README": "" });
    const store = join(home.path, "store");
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", store]);
    try {
      const { pull, left } = open(home.path, { freeDiskBytes: 24 * MIB });
      let least = Number.POSITIVE_INFINITY;
      const sampling = setInterval(() => {
        least = Math.min(least, freeOf(store));
      }, 5);
      const error = await pull("large", [{ ...zeros(60) }]).catch((error: unknown) => error);
      clearInterval(sampling);
      expect(error).toMatchObject({ code: "sandbox.no_capacity", message: expect.stringContaining("less than 24 MiB left") });
      // What had been sent to tar when the check failed.
      expect(least).toBeGreaterThan(16 * MIB);
      expect(left()).toEqual([]);
      expect(freeOf(store)).toBeGreaterThan(63 * MIB);
      // There is room for another one.
      expect((await pull("small", [zeros(8)])).layers).toHaveLength(1);
    } finally {
      execFileSync("umount", [store]);
    }
  });
});

function freeOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function processesWith(argument: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(argument);
    } catch {
      return false;
    }
  });
}
