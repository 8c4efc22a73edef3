import { execFile } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { initKeyArgument, openInitKey } from "./key.ts";
import { initProgram } from "./program.ts";

const sources = fileURLToPath(new URL("../../init", import.meta.url));

describe("the init program of the published package", () => {
  let tree: Tree;
  beforeEach(() => {
    tree = temporaryTree({ "packaged/init-x64": "program", "cache/README": "", "empty/README": "" });
  });
  afterEach(() => tree[Symbol.dispose]());
  const at = (name: string) => join(tree.path, name);

  it("is used as it is", async () => {
    chmodSync(at("packaged/init-x64"), 0o755);
    expect(await initProgram("x64", { packaged: at("packaged"), cacheFolder: at("cache") })).toBe(at("packaged/init-x64"));
  });

  it("is copied once if it lost its permission to execute", async () => {
    const get = () => initProgram("x64", { packaged: at("packaged"), cacheFolder: at("cache") });
    const [one, two] = await Promise.all([get(), get()]);
    expect(one).toBe(two);
    expect(readFileSync(one, "utf8")).toBe("program");
    expect(statSync(one).mode & 0o111).toBe(0o111);
    expect(readdirSync(join(one, ".."))).toEqual(["init-x64"]);
  });

  it("says what to do if it is missing", async () => {
    const missing = initProgram("arm64", { packaged: at("packaged"), sources: at("empty"), cacheFolder: at("cache") });
    await expect(missing).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringMatching(/init for arm64.*install the package again/),
    });
  });
});

describeNeeding("go", "the init program of a checkout", () => {
  it("is built once for each state of the sources, as a static program", { timeout: 300_000 }, async () => {
    using tree = temporaryTree({ "cache/README": "" });
    const options = { packaged: join(tree.path, "none"), sources, cacheFolder: join(tree.path, "cache") };
    const programs = await Promise.all([initProgram("x64", options), initProgram("arm64", options), initProgram("x64", options)]);
    expect(programs[0]).toBe(programs[2]);
    const built = statSync(programs[0]).mtimeMs;
    expect(await initProgram("x64", options)).toBe(programs[0]);
    expect(statSync(programs[0]).mtimeMs).toBe(built);
    // The machine field of the ELF header.
    expect(programs.slice(0, 2).map((path) => readFileSync(path).readUInt16LE(18))).toEqual([62, 183]);
    for (const path of programs) expect(readFileSync(path).includes("ld-linux")).toBe(false);
  });

  it("reports why it does not compile", { timeout: 120_000 }, async () => {
    using tree = temporaryTree({
      "init/go.mod": "module broken\n\ngo 1.25\n",
      "init/main.go": "package main\n\nfunc main() { missing() }\n",
    });
    const building = initProgram("x64", { packaged: tree.path, sources: join(tree.path, "init"), cacheFolder: join(tree.path, "cache") });
    await expect(building).rejects.toThrow(/could not be built.*main\.go:3:15: undefined: missing/s);
  });

  it("starts a program of its command line without a client, and ends with its exit code", { timeout: 300_000 }, async () => {
    using tree = temporaryTree();
    const options = ["--listen", `unix:${join(tree.path, "socket")}`, "--key", initKeyArgument(openInitKey(tree.path))];
    const run = async (...program: string[]) =>
      promisify(execFile)(await initProgram("x64"), [...options, "--", ...program], { env: { CODE: "7" } });
    await expect(run("/bin/sh", "-c", "echo started; exit $CODE")).rejects.toMatchObject({ code: 7, stdout: "started\n" });
    await expect(run("/no/such/program")).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("/no/such/program") });
  });

  it("starts it where a client has put its files, when they are there", { timeout: 300_000 }, async () => {
    using tree = temporaryTree({ "part/src/README": "" });
    const at = (name: string) => join(tree.path, name);
    const options = ["--listen", `unix:${at("socket")}`, "--key", initKeyArgument(openInitKey(tree.path))];
    const waiting = promisify(execFile)(await initProgram("x64"), [
      ...[...options, "--await", at("bundle"), "--cwd", at("bundle/src")],
      ...["--", "/bin/pwd"],
    ]);
    await expect.poll(() => existsSync(at("socket"))).toBe(true);
    renameSync(at("part"), at("bundle"));
    expect((await waiting).stdout).toBe(`${at("bundle/src")}\n`);
  });

  it("passes its own tests", { timeout: 300_000 }, async () => {
    const { stdout } = await promisify(execFile)("go", ["test", "./..."], { cwd: sources });
    expect(stdout).toMatch(/^ok\s/m);
  });
});

describeNeeding("qemu-arm64", "the init program for arm64", () => {
  it("passes its own tests", { timeout: 300_000 }, async () => {
    // As process 1: the emulator cannot make another process the parent of orphans.
    const emulator = "unshare --pid --fork --kill-child --mount-proc qemu-aarch64-static";
    const env = { ...process.env, GOARCH: "arm64", CGO_ENABLED: "0" };
    const { stdout } = await promisify(execFile)("go", ["test", "-exec", emulator, "./..."], { cwd: sources, env });
    expect(stdout).toMatch(/^ok\s/m);
  });
});
