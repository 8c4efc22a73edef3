import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LayerStore } from "../../images/layers.ts";
import { createDisk } from "./disk.ts";
import { mountPoints } from "./mount.ts";
import { copyRoot, mountRoot, type OverlayRoot, removeRoot, rootPath, type UpperStorage, unmountRoot } from "./root.ts";

describeNeeding("overlay", "the root file system of a sandbox", () => {
  let home: ReturnType<typeof temporaryTree>;
  let store: LayerStore;
  const roots: OverlayRoot[] = [];
  const base = `sha256:${"a".repeat(64)}`;

  beforeEach(async () => {
    home = temporaryTree();
    store = new LayerStore(home.path);
    await store.add(base, async (files) => {
      await mkdir(join(files, "etc"));
      await writeFile(join(files, "etc/name"), "base");
      await symlink("/etc/passwd", join(files, "link"));
    });
  });

  afterEach(async () => {
    for (const root of roots.splice(0)) await removeRoot(root);
    expect([...(await mountPoints())].filter((path) => path.startsWith(home.path))).toEqual([]);
    home[Symbol.dispose]();
  });

  const open = async (name: string, layers: readonly string[] = [base], storage: UpperStorage = { kind: "folder" }) => {
    const root: OverlayRoot = { folder: join(home.path, "sandboxes", name), layers, storage };
    roots.push(root);
    await mountRoot(root, store);
    return root;
  };
  const read = (root: OverlayRoot, path: string) => readFileSync(join(rootPath(root), path), "utf8");
  const write = (root: OverlayRoot, path: string, text: string | Buffer) => writeFileSync(join(rootPath(root), path), text);

  it("shares layers, and keeps changes to itself", async () => {
    const [one, two] = [await open("one"), await open("two")];
    write(one, "etc/name", "one");
    rmSync(join(rootPath(two), "etc"), { recursive: true });
    expect(read(one, "etc/name")).toBe("one");
    expect(existsSync(join(rootPath(two), "etc"))).toBe(false);
    expect(readFileSync(join(store.folder, store.filesOf(base), "etc/name"), "utf8")).toBe("base");
  });

  it("keeps its changes when it is unmounted and mounted again", async () => {
    for (const storage of [{ kind: "folder" }, { kind: "disk", sizeMb: 16 }] as const) {
      const root = await open(storage.kind, [base], storage);
      write(root, "new", "kept");
      await unmountRoot(root);
      expect(existsSync(join(rootPath(root), "new"))).toBe(false);
      await mountRoot(root, store);
      expect(read(root, "new")).toBe("kept");
    }
  });

  it("can be empty", async () => {
    const root = await open("empty", []);
    write(root, "a", "b");
    expect(read(root, "a")).toBe("b");
  });

  it("with a limit says which program is missing, and leaves no file", async () => {
    using tree = temporaryTree();
    await expect(createDisk(join(tree.path, "disk"), 16, "no-such-mkfs")).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringMatching(/^the disk of a sandbox cannot be limited to 16 MB without the program 'no-such-mkfs': .*e2fsprogs/),
    });
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it.each(["disk", "memory"] as const)("in %s has no room for more than its limit", async (kind) => {
    const root = await open("limited", [base], { kind, sizeMb: 16 });
    expect(() => write(root, "large", Buffer.alloc(20 * 2 ** 20))).toThrow(/ENOSPC|no space/);
    const other = await open("other", [base], { kind, sizeMb: 16 });
    write(other, "small", "fits");
  });

  it("has no usable device nodes", async () => {
    const root = await open("devices");
    expect(spawnSync("mknod", [join(rootPath(root), "null"), "c", "1", "3"]).status).toBe(0);
    expect(() => write(root, "null", "x")).toThrow("EACCES");
  });

  it.each([{ kind: "folder" }, { kind: "disk", sizeMb: 16 }] as const)("is copied to a layer when it goes on: $kind", async (storage) => {
    const root = await open("parent", [base], storage);
    write(root, "etc/name", "changed");
    mkdirSync(join(rootPath(root), "folder"));
    rmSync(join(rootPath(root), "link"));
    const layers = await copyRoot(root, store, "copy");
    expect(await store.holders()).toEqual(["copy"]);
    write(root, "etc/name", "parent later");
    const fork = await open("fork", layers);
    expect(read(fork, "etc/name")).toBe("changed");
    expect(existsSync(join(rootPath(fork), "folder"))).toBe(true);
    expect(existsSync(join(rootPath(fork), "link"))).toBe(false);
  });

  it("that cannot be mounted leaves nothing mounted and says why", async () => {
    await expect(open("missing", [`sha256:${"b".repeat(64)}`], { kind: "memory", sizeMb: 8 })).rejects.toThrow("could not be mounted");
    await expect(open("a:b")).rejects.toThrow("must not have");
    await expect(open("tiny", [base], { kind: "disk", sizeMb: 1 })).rejects.toThrow("at least 4");
  });
});
