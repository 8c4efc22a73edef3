import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LayerStore } from "../images/layers.ts";
import { type BaseRoot, openBaseRoot } from "./base-root.ts";
import { baseRunnerCommand } from "./files.ts";
import { loaderOf, parseList } from "./libraries.ts";

const runner = 'console.log("it runs", process.argv.slice(2).join(" "));\n';

describeNeeding("overlay", "the base root", () => {
  let tree: Tree;
  let base: BaseRoot;
  let root: string;

  beforeAll(async () => {
    tree = temporaryTree({ "cache/README": "", "other/README": "" });
    base = await openBaseRoot({ folder: join(tree.path, "cache"), runner });
    const layers = new LayerStore(join(tree.path, "store"));
    await base.addTo(layers, AbortSignal.timeout(60_000));
    root = join(layers.folder, layers.filesOf(base.digest));
  }, 120_000);
  afterAll(() => tree[Symbol.dispose]());

  const inRoot = async (...command: readonly string[]) =>
    (await promisify(execFile)("chroot", [root, ...command], { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } })).stdout;

  it("runs the runner with Node, and nothing else of this machine", async () => {
    expect(await inRoot(...baseRunnerCommand, "--host", "10.0.0.2")).toBe("it runs --host 10.0.0.2\n");
    expect(await inRoot("/usr/local/bin/node", "-p", "process.version")).toBe(`${process.version}\n`);
  });

  it("has a shell for programs that Node starts", async () => {
    const script = 'console.log(require("child_process").execSync("echo $((6 * 7))", { encoding: "utf8" }))';
    expect(await inRoot("/usr/local/bin/node", "-e", script)).toBe("42\n\n");
  });

  it("has bash and common commands", async () => {
    expect(await inRoot("/bin/bash", "-c", "seq 3 | sort -r | head -n 1; ls /usr/bin/env; mkfifo /tmp/pipe && rm /tmp/pipe")).toBe(
      "3\n/usr/bin/env\n",
    );
  });

  it("contains users, a folder for temporary files, and only files, links and folders", () => {
    expect(readFileSync(join(root, "etc/passwd"), "utf8")).toMatch(/^root:x:0:0:.*\nnobody:x:65534:/);
    expect(lstatSync(join(root, "tmp")).mode & 0o7777).toBe(0o1777);
    const others = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
      (entry) => !(entry.isFile() || entry.isDirectory() || entry.isSymbolicLink()),
    );
    expect(others).toEqual([]);
  });

  it("has the digest of its archive, which depends on nothing but the content", async () => {
    const hash = createHash("sha256");
    for await (const chunk of base.archive()) hash.update(chunk as Buffer);
    expect(`sha256:${hash.digest("hex")}`).toBe(base.digest);
    expect((await openBaseRoot({ folder: join(tree.path, "other"), runner })).digest).toBe(base.digest);
    expect((await openBaseRoot({ folder: join(tree.path, "other"), runner: `${runner}//` })).digest).not.toBe(base.digest);
  });

  it("keeps the digest until one of the files changes", async () => {
    const node = join(tree.path, "node");
    writeFileSync(node, readFileSync("/bin/sh"));
    const open = () => openBaseRoot({ folder: join(tree.path, "third"), runner, nodePath: node });
    const one = await open();
    expect((await open()).digest).toBe(one.digest);
    expect(readdirSync(join(tree.path, "third"))).toHaveLength(1);
    writeFileSync(node, Buffer.concat([readFileSync("/bin/sh"), Buffer.from("more")]));
    expect((await open()).digest).not.toBe(one.digest);
  });
});

describe("the libraries of a program", () => {
  it("are read from the output of the loader of glibc", () => {
    const text =
      "\tlinux-vdso.so.1 (0x00007f8)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f81)\n\t/lib64/ld-linux-x86-64.so.2 (0x0f)\n";
    expect([...parseList(text, "node")]).toEqual([["libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6"]]);
  });

  it("are read from the output of the loader of musl", () => {
    const text =
      "\t/lib/ld-musl-x86_64.so.1 (0x7fa1)\n\tlibstdc++.so.6 => /usr/lib/libstdc++.so.6 (0x7fa0)\n\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7fa1)\n";
    expect([...parseList(text, "node")]).toEqual([
      ["libstdc++.so.6", "/usr/lib/libstdc++.so.6"],
      ["libc.musl-x86_64.so.1", "/lib/ld-musl-x86_64.so.1"],
    ]);
  });

  it("are named if one is missing", () => {
    expect(() => parseList("\tlibfoo.so.1 => not found\n", "/opt/node")).toThrow("/opt/node needs the library libfoo.so.1");
  });

  it("are refused for a file that is no program", async () => {
    using tree = temporaryTree({ "node.cmd": "echo", empty: "" });
    for (const name of ["node.cmd", "empty"])
      await expect(loaderOf(join(tree.path, name))).rejects.toThrow("not a program for 64-bit Linux");
  });
});
