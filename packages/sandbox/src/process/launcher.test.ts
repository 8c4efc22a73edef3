import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { identityOf, openProcessTable } from "../host/process-table.ts";
import { LAUNCHER_LOST, type LaunchRequest, launch } from "./launcher.ts";

const table = openProcessTable();
const isAlive = (pid: number) => identityOf(table, pid) !== null;

/** A shell that writes its output to `log` in the folder. */
const script = (folder: string, text: string): LaunchRequest => ({
  file: "sh",
  args: ["-c", text],
  variables: { PATH: "/usr/bin:/bin" },
  cwd: folder,
  log: join(folder, "log"),
});

describe("the process that starts programs", () => {
  it("gives a program its folder, its variables and its log, and reports how it ends", async () => {
    using tree = temporaryTree();
    const first = await launch(script(tree.path, "pwd; env; echo wrong >&2; exit 3"));
    expect(await first.ended).toEqual({ code: 3, signal: null });
    const second = await launch(script(tree.path, "kill -9 $$"));
    expect(await second.ended).toEqual({ code: null, signal: "SIGKILL" });
    const lines = readFileSync(join(tree.path, "log"), "utf8").split("\n");
    expect(lines).toContain(tree.path);
    expect(lines).toContain("wrong");
    expect(lines.filter((line) => line.includes("=")).map((line) => line.split("=")[0])).not.toContain("NODE_CHANNEL_FD");
  });

  it("reports a program and a folder that do not exist, and goes on", async () => {
    using tree = temporaryTree();
    await expect(launch({ ...script(tree.path, ""), file: "no-such-program" })).rejects.toMatchObject({ code: "ENOENT" });
    await expect(launch(script(join(tree.path, "nowhere"), ""))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(launch({ ...script(tree.path, ""), group: join(tree.path, "nowhere") })).resolves.toMatchObject({ groupError: "ENOENT" });
  });

  it("gives a program and its session a low priority, so that they leave processors to the server", async () => {
    using tree = temporaryTree();
    const { pid } = await launch(script(tree.path, "exec sleep 600"));
    try {
      await expect.poll(() => getPriority(pid)).toBe(10);
      const group = `/proc/${pid}/autogroup`;
      if (existsSync(group)) await expect.poll(() => readFileSync(group, "utf8")).toMatch(/ nice 10\n$/);
    } finally {
      process.kill(pid, "SIGKILL");
    }
  });

  it("is started again after it was killed; its programs go on, and their exit codes are unknown", async () => {
    using tree = temporaryTree();
    const first = await launch(script(tree.path, "echo $PPID; exec sleep 600"));
    try {
      const log = () => readFileSync(join(tree.path, "log"), "utf8");
      await expect.poll(log).toMatch(/^\d+\n/);
      const lost = launch(script(tree.path, "exec sleep 0"));
      process.kill(Number(log()), "SIGKILL");
      await Promise.all([
        lost.catch((error) => expect(error).toMatchObject({ code: LAUNCHER_LOST })),
        expect(first.ended).resolves.toBeNull(),
      ]);
      expect(isAlive(first.pid)).toBe(true);
      expect(await (await launch(script(tree.path, "exit 4"))).ended).toEqual({ code: 4, signal: null });
    } finally {
      process.kill(first.pid, "SIGKILL");
    }
  });

  const module = JSON.stringify(new URL("launcher.ts", import.meta.url).href);

  it("lets its server end and ends with it, while programs go on", async () => {
    using tree = temporaryTree();
    const request = JSON.stringify(script(tree.path, "echo $PPID; exec sleep 600"));
    const text = `const { launch } = await import(${module}); console.log((await launch(${request})).pid);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", text]);
    const pid = Number(stdout);
    try {
      await expect.poll(() => readFileSync(join(tree.path, "log"), "utf8")).toMatch(/^\d+\n/);
      const launcher = Number(readFileSync(join(tree.path, "log"), "utf8"));
      await expect.poll(() => isAlive(launcher), { timeout: 20_000 }).toBe(false);
      expect(isAlive(pid)).toBe(true);
    } finally {
      process.kill(pid, "SIGKILL");
    }
  });

  it("starts nothing more when its server has been killed", async () => {
    using tree = temporaryTree();
    const started = join(tree.path, "started");
    const [first, second] = [script(tree.path, "echo $PPID; exec sleep 600"), script(tree.path, `touch ${started}; exec sleep 600`)];
    // The launcher is stopped while it gets the second order, and continued when the server has ended.
    const text = `
      import { readFileSync } from "node:fs";
      const { launch } = await import(${module});
      const { pid } = await launch(${JSON.stringify(first)});
      let launcher = "";
      while (!launcher.endsWith("\\n")) launcher = readFileSync(${JSON.stringify(first.log)}, "utf8");
      process.kill(Number(launcher), "SIGSTOP");
      void launch(${JSON.stringify(second)});
      setImmediate(() => console.log(launcher.trim(), pid));
    `;
    const server = spawn(process.execPath, ["--input-type=module", "-e", text], { stdio: ["ignore", "pipe", "inherit"] });
    const [output] = await once(server.stdout, "data");
    const [launcher = 0, pid = 0] = String(output).split(" ").map(Number);
    try {
      server.kill("SIGKILL");
      await once(server, "exit");
      process.kill(launcher, "SIGCONT");
      await expect.poll(() => isAlive(launcher), { timeout: 20_000 }).toBe(false);
      expect(existsSync(started)).toBe(false);
    } finally {
      process.kill(pid, "SIGKILL");
    }
  });
});
