import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import type { LaunchOptions } from "../init/connection.ts";
import { launch, mountByLauncher, waitForLaunchers } from "./launcher.ts";
import { identityOf, openProcessTable, type ProcessIdentity } from "./process-table.ts";

const sh = async (script: string, more: { input?: string; outputPath?: string; signal?: AbortSignal } = {}) => {
  const { stdout, stderr, exitCode, signal } = await launch({ argv: ["sh", "-c", script], ...more });
  return { stdout: stdout.toString(), stderr: stderr.toString(), exitCode, signal };
};

/** A zombie has ended: process 1 of a machine may take its time. */
const isAlive = (pid: number) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

describeNeeding("go", "the launcher of programs", () => {
  it("passes input and returns output and the exit code, without the variables of this process", async () => {
    process.env.AENV_TEST_SECRET = "secret";
    expect(await sh("cat; echo $AENV_TEST_SECRET; pwd; echo wrong >&2; exit 3", { input: "given " })).toEqual({
      stdout: "given \n/\n",
      stderr: "wrong\n",
      exitCode: 3,
      signal: null,
    });
    await expect(launch({ argv: ["no-such-program"] })).rejects.toMatchObject({ code: "no_program" });
  });

  it("appends output to a file, also that of processes which the program leaves behind", async () => {
    using tree = temporaryTree();
    const outputPath = join(tree.path, "log");
    await sh("echo one; (while kill -0 $$; do :; done; echo two) 2>/dev/null & exit 0", { outputPath });
    await sh("echo three >&2", { outputPath });
    await expect.poll(() => readFileSync(outputPath, "utf8").split("\n").sort()).toEqual(["", "one", "three", "two"]);
  });

  it("kills a program and its children when it is told to", async () => {
    const stop = new AbortController();
    const running = sh("sleep 1000 & wait", { signal: stop.signal });
    stop.abort();
    expect(await running).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  });

  it("is started again after it was killed", async () => {
    const parent = Number((await sh("echo $PPID")).stdout);
    process.kill(parent, "SIGTERM");
    expect(Number((await sh("echo $PPID")).stdout)).toBe(parent);
    process.kill(parent, "SIGKILL");
    await expect.poll(() => isAlive(parent), { timeout: 20_000 }).toBe(false);
    await expect.poll(async () => (await sh("echo again").catch(() => null))?.stdout).toBe("again\n");
  });

  it("lets its process end and ends with it, while programs go on", async () => {
    const file = new URL("launcher.ts", import.meta.url).href;
    const script = `
      const { launch } = await import(${JSON.stringify(file)});
      const { stdout } = await launch({ argv: ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $PPID $!"] });
      process.stdout.write(stdout);
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
    const [launcher = 0, sleep = 0] = stdout.trim().split(" ").map(Number);
    await expect.poll(() => isAlive(launcher), { timeout: 20_000 }).toBe(false);
    expect(isAlive(sleep)).toBe(true);
    process.kill(sleep, "SIGKILL");
  });

  it("kills programs that still run when its process is killed, and is gone after them", async () => {
    const file = new URL("launcher.ts", import.meta.url).href;
    const script = `
      const { launch } = await import(${JSON.stringify(file)});
      await launch({ argv: ["sh", "-c", "echo $PPID $$ > " + process.argv[1] + "; sleep 1000"] });
    `;
    using tree = temporaryTree();
    const pids = join(tree.path, "pids");
    const owner = spawn(process.execPath, ["--input-type=module", "-e", script, pids], { stdio: "ignore" });
    await expect.poll(() => existsSync(pids) && readFileSync(pids, "utf8").includes("\n"), { timeout: 20_000 }).toBe(true);
    const [launcher = 0, program = 0] = readFileSync(pids, "utf8").trim().split(" ").map(Number);
    const identity = identityOf(openProcessTable(), owner.pid as number) as ProcessIdentity;
    process.kill(owner.pid as number, "SIGKILL");
    await once(owner, "exit");
    await waitForLaunchers([identity]);
    expect([isAlive(launcher), isAlive(program)]).toEqual([false, false]);
  });

  it("gives a program room for high descriptors, of which one is open", async () => {
    const show = (script: string) => launch({ argv: ["sh", "-c", script], options: { descriptors: 253 } });
    expect(String((await show("grep FDSize /proc/self/status; readlink /proc/self/fd/252; ls /proc/self/fd | wc -l")).stdout)).toBe(
      "FDSize:\t256\n/dev/null\n5\n",
    );
  });

  /** The parameters of a root whose layer does not exist. */
  const absentRoot = (folder: string) => ({
    lower: ["/no/such/folder"],
    changes: folder,
    options: [],
    target: folder,
    host_id: 0,
    size: 0,
  });

  // Linux kills programs of a launcher when the thread ends that has started them, and a mount needs a thread that ends afterwards.
  it("keeps programs that run while it mounts", async () => {
    using tree = temporaryTree();
    const end = join(tree.path, "end");
    const programs = Array.from({ length: 8 }, () => sh(`while [ ! -e ${end} ]; do sleep 0.01; done; exit 5`));
    for (let attempt = 0; attempt < 40; attempt++)
      await mountByLauncher("mount_root", absentRoot(tree.path), AbortSignal.timeout(10_000)).catch(() => undefined);
    writeFileSync(end, "");
    expect(new Set((await Promise.all(programs)).map(({ exitCode }) => exitCode))).toEqual(new Set([5]));
  });

  it("refuses to mount a root of folders that do not exist, and says so", async () => {
    using tree = temporaryTree();
    const root = absentRoot(tree.path);
    const refused = { code: "not_mounted", message: expect.stringContaining("/no/such/folder") };
    await expect(mountByLauncher("mount_root", root, AbortSignal.timeout(10_000))).rejects.toMatchObject(refused);
    await expect(launch({ argv: ["true"], options: { root } })).rejects.toMatchObject(refused);
    await expect(launch({ argv: [], options: { ownMounts: true } })).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describeNeeding("overlay", "a program that the launcher gives mounts of its own", () => {
  it("is on a read-only mount and finds a folder empty, and nobody else does", async () => {
    using tree = temporaryTree({ "folder/file": "here" });
    const folder = join(tree.path, "folder");
    const program = join(tree.path, "program");
    writeFileSync(program, '#!/bin/sh\nls -A "$1"; touch "$0" 2>/dev/null || echo read-only\n', { mode: 0o755 });
    const run = async (options: LaunchOptions) => String((await launch({ argv: [program, folder], options })).stdout);
    expect(await run({ ownMounts: true, hidden: folder })).toBe("read-only\n");
    expect(await run({ ownMounts: true })).toBe("file\nread-only\n");
    expect(await run({})).toBe("file\n");
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(tree.path);
    await expect(run({ ownMounts: true, hidden: "/no/such/folder" })).rejects.toMatchObject({ code: "not_mounted" });
  });
});
