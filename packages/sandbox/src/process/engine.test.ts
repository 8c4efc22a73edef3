import { spawn } from "node:child_process";
import type { KeyObject } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { describeEngine } from "../conformance.ts";
import type { Sandbox, SandboxCommands, SandboxSpec } from "../engine/engine.ts";
import { processesOf } from "../fixtures/marked-processes.ts";
import { ControlGroups } from "../host/control-groups.ts";
import { openProcessTable } from "../host/process-table.ts";
import { connectInit } from "../init/connection.ts";
import { ProcessEngine, type ProcessEngineOptions } from "./engine.ts";
import type { SandboxRecord } from "./sandbox-folder.ts";

const hasProc = process.platform === "linux";
const program = fileURLToPath(new URL("../fixtures/program.js", import.meta.url));
const creator = fileURLToPath(new URL("../fixtures/create-sandboxes.ts", import.meta.url));

const withoutProc = {
  "connect reaches a port on which a process of the sandbox listens": "this system does not report which process listens",
  "connect refuses a port on which no process of the sandbox listens, even if another process does":
    "this system does not report which process listens",
} as const;

function leftovers(home: string): string[] {
  return [...readdirSync(join(home, "sandboxes")), ...(hasProc ? processesOf(home) : [])].map(String);
}

for (const useControlGroups of [true, false]) {
  describeEngine(useControlGroups ? "process" : "process without control groups", {
    open: (home) => new ProcessEngine({ home, graceMs: 500, useControlGroups }),
    command: (behaviour) => (behaviour === "missing" ? ["/nowhere/no-such-program"] : [process.execPath, program, behaviour]),
    leftovers,
    ...(!hasProc && { skip: withoutProc }),
  });
}

describe("the process engine", () => {
  const trees: Tree[] = [];
  const engines: ProcessEngine[] = [];

  afterEach(async () => {
    for (const engine of engines.splice(0)) {
      for (const sandbox of await engine.list()) await sandbox.destroy();
      await engine.close();
    }
    for (const tree of trees.splice(0)) tree[Symbol.dispose]();
  });

  function newHome(): string {
    const tree = temporaryTree();
    trees.push(tree);
    return tree.path;
  }

  function open(options: Partial<ProcessEngineOptions> = {}): ProcessEngine {
    const engine = new ProcessEngine({ home: newHome(), graceMs: 500, ...options });
    engines.push(engine);
    return engine;
  }

  function make(engine: ProcessEngine, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const command = [process.execPath, program, "serve"];
    const spec = { id: "sandbox", command, variables: {}, labels: {}, startTimeoutMs: 15_000, ...more };
    return engine.create(spec, new AbortController().signal);
  }

  it.runIf(hasProc).each([1, 2, 3, 4, 5, 6])(
    "finds every sandbox complete or not at all after the process that creates them was killed (%i)",
    async (seed) => {
      const home = newHome();
      const creating = spawn(process.execPath, [creator, home, program], { stdio: ["ignore", "pipe", "inherit"] });
      creating.stdout.resume();
      await once(creating.stdout, "data");
      await setTimeout((seed * 37) % 150);
      creating.kill("SIGKILL");
      await once(creating, "exit");

      const engine = open({ home });
      const sandboxes = await engine.list();
      await Promise.all(sandboxes.map((sandbox) => ask(sandbox, "/health")));
      expect(processesOf(home).sort()).toEqual(sandboxes.map(({ pid }) => pid).sort());
      expect(readdirSync(join(home, "sandboxes")).sort()).toEqual(sandboxes.map(({ id }) => id).sort());
      await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
      expect(leftovers(home)).toEqual([]);
    },
  );

  it("never mistakes another process with the same pid for a sandbox", async () => {
    const home = newHome();
    const stranger = spawn("sleep", ["600"], { detached: true });
    try {
      const maker = { pid: process.pid, start: "another" };
      writeRecord(home, { maker, process: { pid: stranger.pid as number, start: "another" }, isReady: true });
      expect(await open({ home }).list()).toEqual([]);
      expect(leftovers(home)).toEqual([]);
      expect(openProcessTable().find(stranger.pid as number)?.isZombie).toBe(false);
    } finally {
      stranger.kill("SIGKILL");
    }
  });

  it.runIf(hasProc).each([true, false])(
    "never kills another process that has only the sandbox's path in its environment (control groups: %s)",
    async (useControlGroups) => {
      const engine = open({ useControlGroups });
      const sandbox = await make(engine);
      const { variables } = (await ask(sandbox, "/environment")) as { variables: Record<string, string> };
      const [path = ""] = (variables.AENV_SANDBOX ?? "").split(":");
      const marks = [path, `${path}:`, `${path}:${"0".repeat(32)}`];
      const strangers = marks.map((mark) => spawn("sleep", ["600"], { env: { PATH: process.env.PATH, AENV_SANDBOX: mark } }));
      try {
        await sandbox.destroy();
        for (const { pid } of strangers) expect(openProcessTable().find(pid as number)?.isZombie).toBe(false);
      } finally {
        for (const stranger of strangers) stranger.kill("SIGKILL");
      }
    },
  );

  it.runIf(hasProc)("ends children that left the process group, also without control groups", async () => {
    const engine = open({ useControlGroups: false });
    const sandbox = await make(engine);
    const { inSession, nested } = (await ask(sandbox, "/escaped", "POST")) as { inSession: number; nested: number };
    const isRunning = (pid: number) => openProcessTable().find(pid)?.isZombie === false;
    expect([inSession, nested].map(isRunning)).toEqual([true, true]);
    await sandbox.destroy();
    await expect.poll(() => [inSession, nested].map(isRunning)).toEqual([false, false]);
  });

  it("leaves no control group behind", async () => {
    const engine = open();
    const sandbox = await make(engine);
    const record = recordOf(sandbox);
    expect(record.group !== null).toBe(engine.can.findsStrays);
    await sandbox.destroy();
    if (record.group !== null) expect(existsSync(dirname(record.group))).toBe(false);
  });

  describeNeeding("control-groups-v2", "in control groups", () => {
    it("freezes all processes of a sandbox, and ends a frozen sandbox at once", async () => {
      const engine = open();
      expect(engine.can.freezes).toBe(true);
      const sandbox = await make(engine);
      await sandbox.freezing?.freeze();
      await sandbox.freezing?.freeze();
      const used = await sandbox.freezing?.cpuMs();
      const answer = ask(sandbox, "/health");
      expect(used).toBeGreaterThan(0);
      expect(await sandbox.freezing?.cpuMs()).toBe(used);
      await sandbox.freezing?.thaw();
      await answer;
      await sandbox.freezing?.freeze();
      await sandbox.destroy();
    });

    it("ends and removes a group that a killed server left without a record", async () => {
      const home = newHome();
      const { group } = recordOf(await make(open({ home })));
      const left = join(dirname(group as string), "left");
      const stray = spawn("sleep", ["600"]);
      const ended = once(stray, "exit");
      mkdirSync(left);
      writeFileSync(join(left, "cgroup.procs"), String(stray.pid));
      expect((await open({ home }).list()).map(({ id }) => id)).toEqual(["sandbox"]);
      await ended;
      expect(existsSync(left)).toBe(false);
      expect(existsSync(group as string)).toBe(true);
    });

    it("leaves no group of a program that ends at once, perhaps before it was moved there", async () => {
      const home = newHome();
      const engine = open({ home });
      const path = (ControlGroups.open(join(home, "sandboxes")) as ControlGroups).pathOf("sandbox");
      for (let attempt = 0; attempt < 5; attempt++) {
        await expect(make(engine, { command: ["true"] })).rejects.toMatchObject({ code: "sandbox.start_failed" });
        expect(existsSync(dirname(path))).toBe(false);
      }
    });
  });

  it("waits at close for pending destroys, so that no files are left", async () => {
    const home = newHome();
    const engine = open({ home });
    const sandbox = await make(engine);
    const destroying = sandbox.destroy();
    await engine.close();
    expect(leftovers(home)).toEqual([]);
    await destroying;
  });

  it("does not touch a sandbox that another process is creating, and removes it when that process has ended", async () => {
    const home = newHome();
    const self = { pid: process.pid, start: openProcessTable().find(process.pid)?.start ?? "" };
    writeRecord(home, { maker: self, process: null, isReady: false });
    const engine = open({ home });
    expect(await engine.list()).toEqual([]);
    expect(leftovers(home)).toEqual(["sandbox"]);
    writeRecord(home, { maker: { ...self, start: "earlier" }, process: null, isReady: false });
    expect(await engine.list()).toEqual([]);
    expect(leftovers(home)).toEqual([]);
  });

  it("removes sandboxes with a damaged record, and touches nothing else", async () => {
    const home = newHome();
    mkdirSync(join(home, "sandboxes", "damaged"), { recursive: true });
    writeFileSync(join(home, "sandboxes", "damaged", "sandbox.json"), "{");
    writeFileSync(join(home, "sandboxes", "README"), "not a sandbox");
    mkdirSync(join(home, "sandboxes", ".part-1_long-ago_abc"));
    expect(await open({ home }).list()).toEqual([]);
    expect(leftovers(home)).toEqual(["README"]);
  });

  it("gives a sandbox its own folders and no other variables", async () => {
    const engine = open({ path: "/usr/bin:/bin" });
    const sandbox = await make(engine);
    const { variables, folder } = (await ask(sandbox, "/environment")) as { variables: Record<string, string>; folder: string };
    const own = dirname(folder);
    expect(variables).toEqual({
      PATH: "/usr/bin:/bin",
      HOME: folder,
      TMPDIR: join(own, "tmp"),
      LANG: "C.UTF-8",
      AENV_SANDBOX: expect.stringMatching(new RegExp(`^${own}:[0-9a-f]{32}$`)),
    });
    expect(statSync(variables.TMPDIR as string).isDirectory()).toBe(true);
  });

  it("uses a shorter path for a socket whose path would be too long, and removes it too", async () => {
    const home = join(newHome(), "x".repeat(100));
    const runtimeFolder = newHome();
    const engine = open({ home, runtimeFolder });
    const sandbox = await make(engine);
    expect(sandbox.address).toMatchObject({ kind: "unix", path: expect.stringContaining(runtimeFolder) });
    await engine.close();
    const [found] = await open({ home, runtimeFolder }).list();
    expect(found?.address).toEqual(sandbox.address);
    await found?.destroy();
    expect(readdirSync(runtimeFolder)).toEqual([]);
  });

  it("limits the size of a sandbox's log, and still returns its last lines", async () => {
    const engine = open({ logBytes: 2_000 });
    const sandbox = await make(engine);
    const log = join(dirname(((await ask(sandbox, "/environment")) as { folder: string }).folder), "log");
    for (let n = 0; n < 300; n++) await ask(sandbox, `/print?line=line-${n}-${"x".repeat(20)}`, "POST");
    await expect.poll(() => statSync(log).size, { timeout: 5_000 }).toBeLessThan(2_000);
    expect((await sandbox.tail(1))[0]).toBe(`line-299-${"x".repeat(20)}`);
    expect(await sandbox.tail(20)).toHaveLength(20);
    await ask(sandbox, "/print?line=after", "POST");
    await expect.poll(() => sandbox.tail(1)).toEqual(["after"]);
  });

  it("ends a sandbox that exceeds its memory limit, and reports it", async () => {
    const engine = open();
    const sandbox = await make(engine, { resources: { memoryMb: 100 } });
    ask(sandbox, "/allocate?mb=200", "POST").catch(() => undefined);
    expect((await sandbox.exited).reason).toMatch(/used \d{3} MB of memory; its limit is 100 MB/);
  });

  it("reports that a sandbox exhausted its heap", async () => {
    const engine = open({ nodeOptions: ["--max-old-space-size=32"] });
    const sandbox = await make(engine, { resources: { memoryMb: 1_000 }, command: [process.execPath, program, "hoard"] });
    expect((await sandbox.exited).reason).toBe("the program ran out of memory (its limit is 1000 MB)");
  });

  it("ends a sandbox that has used up its CPU time, and reports it", async () => {
    const engine = open();
    const sandbox = await make(engine, { resources: { cpuSeconds: 1 } });
    ask(sandbox, "/burn", "POST").catch(() => undefined);
    expect((await sandbox.exited).reason).toMatch(/used up its CPU time/);
  });

  it("starts an id once, also while that is being created", async () => {
    const engine = open();
    const creating = make(engine);
    await expect(make(engine)).rejects.toMatchObject({ code: "sandbox.exists" });
    expect(await engine.list()).toEqual([]);
    await ask(await creating, "/health");
  });

  it("refuses ids that would lead elsewhere", async () => {
    const engine = open();
    for (const id of ["", "..", "../other", "a/b", ".hidden", "x".repeat(129), "a\0b"]) {
      await expect(make(engine, { id })).rejects.toMatchObject({ code: "request.invalid" });
    }
    await expect(make(engine, { command: [] })).rejects.toMatchObject({ code: "request.invalid" });
  });

  it("creates no sandbox once it is closed, and cancels those that are starting", async () => {
    const engine = open();
    const making = make(engine, { command: [process.execPath, program, "silent"] });
    const outcome = expect(making).rejects.toMatchObject({ code: "request.cancelled" });
    await engine.close();
    await outcome;
    await expect(make(engine)).rejects.toMatchObject({ code: "server.draining" });
    expect(await engine.list()).toEqual([]);
  });

  it("distinguishes a folder that cannot be written from an id in use", async () => {
    const home = newHome();
    const engine = open({ home });
    rmdirSync(join(home, "sandboxes"));
    writeFileSync(join(home, "sandboxes"), "in the way");
    await expect(make(engine)).rejects.toMatchObject({ code: "sandbox.start_failed", message: expect.stringContaining("ENOTDIR") });
    rmSync(join(home, "sandboxes"));
    mkdirSync(join(home, "sandboxes"));
  });

  it("refuses to run on Windows", () => {
    const platform = Object.getOwnPropertyDescriptor(process, "platform") as PropertyDescriptor;
    Object.defineProperty(process, "platform", { value: "win32" });
    try {
      expect(() => new ProcessEngine({ home: "never" })).toThrow(expect.objectContaining({ code: "sandbox.unsupported" }));
    } finally {
      Object.defineProperty(process, "platform", platform);
    }
    expect(existsSync("never")).toBe(false);
  });
});

function recordOf({ address }: Sandbox): SandboxRecord {
  return JSON.parse(readFileSync(join(dirname((address as { path: string }).path), "sandbox.json"), "utf8")) as SandboxRecord;
}

function writeRecord(home: string, more: Pick<SandboxRecord, "maker" | "process" | "isReady">): void {
  const folder = join(home, "sandboxes", "sandbox");
  mkdirSync(folder, { recursive: true });
  const record: SandboxRecord = {
    format: 2,
    id: "sandbox",
    labels: {},
    createdAt: "",
    socket: join(folder, "s"),
    memoryMb: null,
    secret: "s3cret",
    group: null,
    ...more,
  };
  writeFileSync(join(folder, "sandbox.json"), JSON.stringify(record));
}

describeNeeding("go", "the init beside a program", () => {
  it.each([true, false])(
    "runs commands in the sandbox's folder, and ends with the sandbox (control groups: %s)",
    async (useControlGroups) => {
      using tree = temporaryTree();
      const engine = new ProcessEngine({ home: tree.path, graceMs: 500, useControlGroups, useInit: true });
      // It stands for another server of the same home.
      const other = new ProcessEngine({ home: tree.path, useControlGroups, useInit: true });
      const signal = AbortSignal.timeout(30_000);
      const spec = { id: "sandbox", command: [process.execPath, program, "serve"], variables: {}, labels: {}, startTimeoutMs: 15_000 };
      try {
        const { commands } = await engine.create(spec, signal);
        const { address, defaults } = commands as SandboxCommands;
        expect((await other.list()).map((one) => one.commands?.address)).toEqual([address]);
        await using init = await connectInit(address, other.commands?.key as KeyObject, signal);
        const { stdout } = await init.run({ argv: ["pwd"], ...defaults });
        expect(stdout.toString()).toBe(`${defaults?.cwd}\n`);
        await init.spawn({ argv: ["sleep", "600"], ...defaults });
      } finally {
        for (const sandbox of await engine.list()) await sandbox.destroy();
        await Promise.all([engine.close(), other.close()]);
      }
      expect(leftovers(tree.path)).toEqual([]);
    },
  );
});

function ask({ address }: Sandbox, path: string, method = "GET"): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sent = get({ socketPath: address.kind === "unix" ? address.path : "", method, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", reject).on("end", () => resolve(JSON.parse(text)));
    });
    sent.on("error", reject);
  });
}
