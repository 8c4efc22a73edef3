import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, type Files, type Tree, temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { expect, it } from "vitest";
import { buildImages } from "../bench/images.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { openOciImages } from "../testing/images.ts";

const MEBIBYTE = 2 ** 20;

/** A folder with a storage of buildah of its own, and a terminal. */
function openWorkshop(files: Files) {
  const tree = temporaryTree(files);
  // vfs mounts nothing, so it works everywhere.
  tree.write({ "storage.conf": `[storage]\ndriver = "vfs"\ngraphroot = "${tree.path}/images"\nrunroot = "${tree.path}/run"\n` });
  const bin = join(tree.path, "bin");
  execFileSync("mkdir", ["-p", bin]);
  // The only builder there.
  for (const name of ["buildah", "skopeo"])
    execFileSync("ln", ["-s", execFileSync("which", [name], { encoding: "utf8" }).trim(), join(bin, name)]);
  const env = { PATH: bin, HOME: tree.path, CONTAINERS_STORAGE_CONF: join(tree.path, "storage.conf"), BUILDAH_ISOLATION: "chroot" };
  const stop = new AbortController();
  let shown = "";
  const output = {
    colors: picocolors.createColors(false),
    isTty: false,
    columns: 80,
    write(text: string) {
      shown += text;
      if (shown.includes("STOP HERE")) stop.abort();
    },
  };
  const terminal = {
    stdout: output,
    stderr: output,
    cwd: tree.path,
    env,
    isInteractive: false,
    stopSignal: () => stop.signal,
  } as unknown as Terminal;
  const buildah = (...args: string[]) => execFileSync("buildah", args, { env, encoding: "utf8" }).trim();
  return { tree, terminal, buildah, stop, [Symbol.dispose]: () => tree[Symbol.dispose]() };
}

function sourceOf(tree: Tree, folder: string) {
  return { image: `example.com/tasks/${folder}:1`, context: join(tree.path, folder) };
}

describeNeeding("buildah", "images of tasks that buildah builds", () =>
  describeNeeding("skopeo", "and skopeo copies", () => {
    it("have only their own layers copied if the engine has the others", { timeout: 120_000 }, async () => {
      const base = "FROM scratch\nCOPY base /base\n";
      using workshop = openWorkshop({
        "one/Dockerfile": base,
        "one/base": "",
        "two/Dockerfile": `FROM example.com/tasks/one:1\nCOPY own /own\n`,
        "two/own": "mine",
      });
      const { tree, terminal } = workshop;
      truncateSync(join(tree.path, "one/base"), 64 * MEBIBYTE);
      await using store = await openOciImages({ home: join(tree.path, "home") });
      const sizes: number[] = [];
      const measured = {
        ...store,
        receive: (image: string, write: (layout: string) => Promise<void>, signal: AbortSignal) =>
          store.receive?.(
            image,
            async (layout) => {
              await write(layout);
              sizes.push(Number(execFileSync("du", ["-sm", "--apparent-size", layout], { encoding: "utf8" }).split("\t")[0]));
            },
            signal,
          ) as Promise<void>,
      };
      const sources = ["one", "two"].map((name) => sourceOf(tree, name));
      expect(await buildImages(sources, measured, terminal)).toEqual(new Map());
      expect(await Promise.all(sources.map(({ image }) => store.has(image)))).toEqual([true, true]);
      expect(sizes[0]).toBeGreaterThanOrEqual(64);
      expect(sizes[1]).toBeLessThanOrEqual(1);
      const layers = execFileSync("find", [join(tree.path, "home/oci/store/layers"), "-path", "*/diff/*", "-type", "f"], {
        encoding: "utf8",
      })
        .trim()
        .split("\n");
      expect(layers.map((path) => [path.split("/").at(-1), statSync(path).size]).sort()).toEqual([
        ["base", 64 * MEBIBYTE],
        ["own", 4],
      ]);
    });

    it("leave no container, mount or process if a step fails", { timeout: 120_000 }, async () => {
      using workshop = openWorkshop({ "one/Dockerfile": 'FROM scratch\nCOPY a /a\nRUN ["/missing"]\n', "one/a": "" });
      const { tree, terminal, buildah } = workshop;
      await using store = await openOciImages({ home: join(tree.path, "home") });
      const missing = await buildImages([sourceOf(tree, "one")], store, terminal);
      expect([...missing.values()].join()).toContain("could not be built");
      expectNothingLeft(tree, buildah);
    });

    it("leave none of them either if the build is stopped while it copies files", { timeout: 120_000 }, async () => {
      const dockerfile = 'FROM scratch\nLABEL a=b\nCOPY ["STOP HERE", "/big"]\n';
      using workshop = openWorkshop({ "one/Dockerfile": dockerfile, "one/STOP HERE": "" });
      const { tree, terminal, buildah } = workshop;
      truncateSync(join(tree.path, "one/STOP HERE"), 2_048 * MEBIBYTE);
      // Before: containers were left because a builder ran, also one with another storage.
      symlinkSync(execFileSync("which", ["sleep"], { encoding: "utf8" }).trim(), join(tree.path, "buildah"));
      const other = spawn(join(tree.path, "buildah"), ["120"], { env: { CONTAINERS_STORAGE_CONF: "/other" } });
      await once(other, "spawn");
      await using store = await openOciImages({ home: join(tree.path, "home") });
      await expect(buildImages([sourceOf(tree, "one")], store, terminal)).rejects.toMatchObject({ message: "stopped" });
      other.kill();
      await once(other, "exit");
      expectNothingLeft(tree, buildah);
    });
  }),
);

function expectNothingLeft(tree: Tree, buildah: (...args: string[]) => string): void {
  expect(buildah("containers", "--quiet")).toBe("");
  expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(`${tree.path}/`);
  const running = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
  expect(running.split("\n").filter((line) => line.includes("buildah") && line.includes(tree.path))).toEqual([]);
}
