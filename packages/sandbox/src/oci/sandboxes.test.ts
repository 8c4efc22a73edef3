import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeNeeding, limitMemoryAbove, mountUntranslatedDisk, type SmallDisk, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, expect, it } from "vitest";
import type { Sandbox, SandboxSpec } from "../engine/engine.ts";
import { TEST_PROGRAM } from "../fixtures/test-root.ts";
import { writeLayout } from "../images/fixtures/layout.ts";
import { connectInit } from "../init/connection.ts";
import type { ProcessOutput } from "../init/process.ts";
import { OciEngine } from "./engine.ts";
import type { OciEngineOptions } from "./options.ts";
import type { OciSandbox } from "./sandbox.ts";
import { testBase } from "./testing/base.ts";
import { leftoversOf } from "./testing/leftovers.ts";

const storeFolder = mkdtempSync(join(tmpdir(), "aenv-oci-store-"));
afterAll(() => rmSync(storeFolder, { recursive: true, force: true }));

const { signal } = new AbortController();
const opened: { engine: OciEngine; home: string }[] = [];
const disks: SmallDisk[] = [];

afterEach(async () => {
  const left: string[] = [];
  // Those that have ended, which are not listed any more.
  for (const sandbox of created.splice(0)) await sandbox.destroy().catch(() => undefined);
  for (const { engine, home } of opened.splice(0).reverse()) {
    for (const sandbox of await engine.list()) await sandbox.destroy();
    await engine.close();
    left.push(...(await leftoversOf(home)));
    rmSync(home, { recursive: true, force: true });
  }
  for (const disk of disks.splice(0)) disk[Symbol.dispose]();
  expect(left).toEqual([]);
});

/** An engine whose sandboxes are destroyed after the test. */
function open(options: Partial<OciEngineOptions> = {}): OciEngine {
  const home = options.home ?? realpathSync(mkdtempSync(join(tmpdir(), "aenv-oci-")));
  const engine = new OciEngine({ base: testBase, storeFolder, ...options, home });
  opened.push({ engine, home });
  return engine;
}

/** A file of an image: a link to what a running system would have. */
const ABSENT = { type: "symlink", linkPath: "/run/absent/resolv.conf" } as const;

let made = 0;
const created: Sandbox[] = [];

/** A sandbox with the conformance suite's program. */
function serve(engine: OciEngine, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  return create(engine, { command: ["/usr/bin/node", TEST_PROGRAM, "serve"], ...more });
}

/** A sandbox that only runs commands, unless `more` says otherwise. */
async function create(engine: OciEngine, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const listening = more.command === undefined ? { listening: { kind: "none" } as const } : {};
  const spec = { id: `s-${++made}`, command: [], variables: {}, labels: {}, startTimeoutMs: 30_000, ...listening, ...more };
  const sandbox = await engine.create(spec, signal);
  created.push(sandbox);
  return sandbox;
}

async function run(engine: OciEngine, sandbox: Sandbox, script: string): Promise<ProcessOutput> {
  await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
  return await init.run({ argv: ["/bin/sh", "-c", script] });
}

/** The containers of a home, and which one a sandbox has. */
function filesOf(home: string) {
  const recordIn = (folder: string, id: string) => JSON.parse(readFileSync(join(home, "oci", folder, id, "record.json"), "utf8"));
  return {
    containers: () =>
      readdirSync(join(home, "oci/containers"))
        .filter((name) => !name.startsWith("."))
        .map((id) => {
          const { files, fileServer } = recordIn("containers", id);
          return { id, layers: files.layers as string[], fileServer: fileServer?.pid as number | undefined };
        }),
    containerOf: ({ id }: Sandbox): string => recordIn("sandboxes", id).container,
  };
}

function post({ address }: Sandbox, path: string): Promise<void> {
  const { host, port } = address as { host: string; port: number };
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, method: "POST", path, agent: false }, (response) => response.on("end", resolve).resume());
    sent.on("error", reject).end();
  });
}

for (const runtime of ["runc", "runsc"] as const) {
  describeNeeding(runtime, `a sandbox of the oci engine with ${runtime}`, () => {
    it("that exceeds its memory limit ends with that reason", async () => {
      const sandbox = await serve(open({ runtime }), { resources: { memoryMb: 128 } });
      // Nobody answers for a kernel that was killed.
      void post(sandbox, "/allocate?mb=400").catch(() => undefined);
      expect((await sandbox.exited).reason).toBe("the program ran out of memory (its limit is 128 MB)");
    });

    it("has a filter of system calls, also if it was compiled for another sandbox, and a log in which its init announces itself", async () => {
      const engine = open({ runtime, poolSize: 0 });
      const { home } = opened.at(-1) as (typeof opened)[0];
      const sandboxes = [await create(engine), await create(engine)];
      for (const sandbox of sandboxes) {
        // Without the filter it could: that needs no capability.
        if (runtime === "runc") expect((await run(engine, sandbox, "unshare --user true")).stderr.toString()).toMatch(/unshare failed: \w/);
        const folder = join(home, "oci/containers", filesOf(home).containerOf(sandbox));
        expect(readFileSync(join(folder, "init-log"), "utf8")).toBe("listening\n");
      }
    });

    it("is idle since its last command, and not while a program works", async () => {
      const engine = open({ runtime });
      const sandbox = await create(engine);
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      const idleMs = async () => (await init.stats()).idleMs;
      // To ask for it is no use of the sandbox.
      await expect.poll(idleMs, { interval: 20, timeout: 20_000 }).toBeGreaterThan(300);
      const startedAt = performance.now();
      await init.run({ argv: ["/bin/sh", "-c", ":"] });
      const after = await init.stats();
      expect(after.idleMs).toBeLessThanOrEqual(performance.now() - startedAt);
      expect(after.load).toBeGreaterThanOrEqual(0);
      const busy = await init.spawn({ argv: ["/bin/sh", "-c", "while :; do :; done"] });
      await expect.poll(() => init.stats(), { interval: 5, timeout: 20_000 }).toMatchObject({ idleMs: 0, runnable: 1 });
      await init.signal(busy.id, "SIGKILL");
    }, 60_000);

    it("has an address of the subnet that the operator chose", async () => {
      const [high, low] = [18 + randomInt(2), randomInt(256)];
      const engine = open({ runtime, subnet: `198.${high}.${low}.0/28`, networkPoolSize: 0 });
      const { address } = await serve(engine);
      expect(address).toMatchObject({ host: expect.stringMatching(new RegExp(`^198\\.${high}\\.${low}\\.`)) });
    });

    it("cannot write more than its disk limit", async () => {
      const engine = open({ runtime });
      const sandbox = await create(engine, { resources: { diskMb: 16 } });
      expect(await run(engine, sandbox, "dd if=/dev/zero of=/file bs=1048576 count=64")).toMatchObject({ exitCode: 1 });
      expect(await run(engine, sandbox, "dd if=/dev/zero of=/file bs=1048576 count=4")).toMatchObject({ exitCode: 0 });
    });

    it("has a /dev/shm of the size that it asks for, which counts as its memory", async () => {
      const engine = open({ runtime });
      const write = (sandbox: Sandbox, mb: number) => run(engine, sandbox, `dd if=/dev/zero of=/dev/shm/file bs=1048576 count=${mb}`);
      expect(await write(await create(engine, { resources: { memoryMb: 512 } }), 100)).toMatchObject({ exitCode: 1 });
      const larger = await create(engine, { resources: { memoryMb: 512, shmMb: 200 } });
      expect(await write(larger, 100)).toMatchObject({ exitCode: 0 });
      expect(await write(larger, 300)).toMatchObject({ exitCode: 1 });
      // The whole sandbox ends with runsc, so there may be no answer.
      const small = await create(engine, { resources: { memoryMb: 128, shmMb: 600 } });
      const ended = await Promise.race([write(small, 400).catch(() => ({ exitCode: -1 })), small.exited.then(() => ({ exitCode: -1 }))]);
      expect(ended.exitCode).not.toBe(0);
      await expect(create(engine, { resources: { shmMb: 0.5 } })).rejects.toMatchObject({
        message: expect.stringContaining("/dev/shm is 0.5 MB"),
      });
    });

    it("has folders in memory, hosts and a limit of processes that it asks for, and no more processes than the engine allows", async () => {
      const engine = open({ runtime, defaults: { processes: 100 } });
      const tmpfs = [
        { path: "/scratch", sizeMb: 8 },
        { path: "/tools", sizeMb: 8, mode: 0o700, isExecutable: true },
      ];
      const sandbox = await create(engine, {
        resources: { memoryMb: 256, processes: 50 },
        tmpfs,
        hosts: [{ name: "city.example", address: "192.0.2.7" }],
      });
      const write = (path: string, mb: number) =>
        run(engine, sandbox, `dd if=/dev/zero of=${path}/file bs=1048576 count=${mb}; rm ${path}/file`);
      expect((await write("/scratch", 4)).stderr.toString()).not.toContain("No space");
      expect((await write("/scratch", 10)).stderr.toString()).toContain("No space");
      const start = (path: string) => run(engine, sandbox, `cp /bin/sh ${path}/sh && ${path}/sh -c true`);
      expect([await start("/scratch"), await start("/tools")]).toMatchObject([{ exitCode: 126 }, { exitCode: 0 }]);
      expect((await run(engine, sandbox, "grep -c '192.0.2.7 city.example' /etc/hosts")).stdout.toString()).toBe("1\n");
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      const modes = [await init.files.stat({ path: "/scratch" }), await init.files.stat({ path: "/tools" })].map(({ mode }) => mode);
      expect(modes).toEqual([0o777, 0o700]);
      const greedy = await create(engine, { resources: { processes: 5_000 } });
      expect([sandbox, greedy].map((one) => (one as OciSandbox).knownLimits.processes)).toEqual([50, 100]);
    });

    it("has the files of its image, and no program unless it is told so", async () => {
      using layout = temporaryTree();
      writeLayout(layout.path, [{ "data/greeting": "hello" }], { config: { Cmd: ["/bin/sh"], Env: ["PLACE=here"], WorkingDir: "/data" } });
      const engine = open({ runtime });
      const sandbox = await create(engine, { image: `oci:${layout.path}:image` });
      expect(sandbox.commands?.defaults).toEqual({ cwd: "/data", env: { PLACE: "here" } });
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      expect(String(await init.files.read({ path: "/data/greeting" }))).toBe("hello");
    });

    it("has the working directory of its image, also if no layer contains it", async () => {
      using layout = temporaryTree();
      writeLayout(layout.path, [{ "data/greeting": "hello" }], { config: { WorkingDir: "/data/work/here" } });
      const engine = open({ runtime });
      const sandbox = await create(engine, { image: `oci:${layout.path}:image` });
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      expect(await init.files.stat({ path: "/data/work/here" })).toMatchObject({ type: "directory", mode: 0o755, uid: 0 });
    });

    it.each([
      ["a link to a folder", "/work"],
      ["a folder below a link", "/work/deep/er"],
    ])("has the working directory of its image if it is %s", async (_, workingDirectory) => {
      using layout = temporaryTree();
      const layer = { "data/here/kept": "", work: { type: "symlink", linkPath: "data/here" } } as const;
      writeLayout(layout.path, [layer], { config: { WorkingDir: workingDirectory } });
      const engine = open({ runtime });
      const sandbox = await create(engine, { image: `oci:${layout.path}:image` });
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      const path = workingDirectory.replace("/work", "/data/here");
      expect(await init.files.stat({ path })).toMatchObject({ type: "directory" });
    });

    it.each(["/data/greeting", "/data/greeting/here"])(
      "does not start if a file is in the place of its working directory %s",
      async (path) => {
        using layout = temporaryTree();
        writeLayout(layout.path, [{ "data/greeting": "hello" }], { config: { WorkingDir: path } });
        await expect(create(open({ runtime }), { image: `oci:${layout.path}:image` })).rejects.toMatchObject({
          code: "sandbox.start_failed",
          message: expect.stringContaining(`the working directory ${path} cannot be created`),
        });
      },
    );

    it("starts from an image that has the same layer twice, and the higher one counts", async () => {
      using layout = temporaryTree();
      const low = { "data/name": "low" };
      writeLayout(layout.path, [low, { "data/name": "high", "data/.wh.gone": "" }, low, {}, {}]);
      const engine = open({ runtime });
      const sandbox = await create(engine, { image: `oci:${layout.path}:image` });
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      expect(String(await init.files.read({ path: "/data/name" }))).toBe("low");
    });

    it("that is frozen answers after it was thawed", async () => {
      const sandbox = await serve(open({ runtime }));
      await sandbox.freezing?.freeze();
      await sandbox.freezing?.freeze();
      const answered = post(sandbox, "/print?line=thawed");
      expect(await sandbox.tail(1)).toEqual([]);
      await sandbox.freezing?.thaw();
      await answered;
      await expect.poll(() => sandbox.tail(1), { timeout: 15_000 }).toEqual(["thawed"]);
    });

    // A gVisor without the correction of deploy/runsc loses one of fourteen.
    it("that is frozen again and again while it answers requests goes on", { timeout: 120_000 }, async () => {
      const engine = open({ runtime });
      const sandbox = await create(engine);
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      await init.files.write({ path: "/file", content: Buffer.from("text") });
      for (let turn = 0; turn < 60; turn++) {
        const reads = Array.from({ length: 30 }, async () => String(await init.files.read({ path: "/file" })));
        // At any moment of the reads.
        for (let turns = turn % 20; turns > 0; turns--) await new Promise(setImmediate);
        await sandbox.freezing?.freeze();
        await sandbox.freezing?.thaw();
        expect(new Set(await Promise.all(reads))).toEqual(new Set(["text"]));
      }
    });

    it("that ends before the next engine has listed it is removed by that engine", async () => {
      const first = open({ runtime });
      const { home } = opened.pop() as (typeof opened)[0];
      const ended = await create(first);
      await first.close();
      const next = open({ runtime, home });
      // It has been adopted before this one was created.
      const other = await create(next);
      process.kill(ended.pid as number, "SIGKILL");
      await expect.poll(() => readdirSync(join(home, "oci/containers")).length).toBe(1);
      expect((await next.list()).map(({ id }) => id)).toEqual([other.id]);
      expect(readdirSync(join(home, "oci/sandboxes"))).toEqual([other.id]);
    });
  });
}

describeNeeding("runsc", "a sandbox of the oci engine with runsc", () => {
  it("whose file server was killed ends with that reason, and is not listed any more", async () => {
    const engine = open({ runtime: "runsc" });
    const home = opened.at(-1)?.home as string;
    const first = await create(engine);
    // The kernel of a restored one does not notice it.
    const sandbox = await create(engine, { snapshot: (await first.snapshots?.take("memory", signal))?.id as string });
    const recordOf = (kind: string, id: string) => JSON.parse(readFileSync(join(home, "oci", kind, id, "record.json"), "utf8"));
    const { fileServer } = recordOf("containers", recordOf("sandboxes", sandbox.id).container);
    expect(readFileSync(`/proc/${fileServer.pid}/cmdline`, "utf8")).toContain("gofer");
    process.kill(fileServer.pid, "SIGKILL");
    expect((await sandbox.exited).reason).toBe("the process that serves the files of the sandbox (runsc-gofer) was killed");
    expect((await engine.list()).map(({ id }) => id)).toEqual([first.id]);
  });
});

describeNeeding("runc", "the oci engine", () => {
  it("gives sandboxes users that are not those of the machine, and the same files as before", async () => {
    using folder = temporaryTree({ "data/file": "from the machine" });
    chmodSync(join(folder.path, "data"), 0o700);
    const mounts = [{ kind: "bind", source: join(folder.path, "data"), target: "/data", isReadOnly: true }] as const;
    const engine = open({ base: async (layers) => ({ ...(await testBase(layers)), mounts }) });
    const sandbox = await create(engine);
    const seen = async (script: string) => (await run(engine, sandbox, script)).stdout.toString().trim();
    const owner = statSync(`/proc/${sandbox.pid}`).uid;
    expect(owner).toBeGreaterThan(2 ** 30);
    expect(await seen("cat /proc/self/uid_map")).toMatch(new RegExp(`^0\\s+${owner}\\s+65536$`));
    // Owners, folders of the machine and /sys look as without a mapping.
    expect(await seen("ls -ldn /etc /data/file | grep -c ' 0 *0 '")).toBe("2");
    expect(await seen("cat /data/file; ls /sys/class/net; touch /data/new || echo refused")).toMatch(
      /^from the machine\s?eth0\s+lo\s+refused$/,
    );
    // On disk they are the same too, so that snapshots and layers do not depend on the mapping.
    await seen("echo text > /tmp/new");
    const containers = join(opened.at(-1)?.home as string, "oci/containers");
    const [container = ""] = readdirSync(containers);
    expect(statSync(join(containers, container, "root/changes/upper/tmp/new")).uid).toBe(0);
  });

  it("gives sandboxes the users of the machine if it is told so", async () => {
    const sandbox = await create(open({ users: "machine" }));
    expect(statSync(`/proc/${sandbox.pid}`).uid).toBe(0);
  });

  it("says once that sandboxes have the users of the machine, because a file system cannot translate owners", async () => {
    const disk = mountUntranslatedDisk();
    disks.push(disk);
    const lines: string[] = [];
    const engine = open({ storeFolder: disk.path, log: (line) => lines.push(line) });
    for (const sandbox of [await create(engine), await create(engine)]) expect(statSync(`/proc/${sandbox.pid}`).uid).toBe(0);
    expect(lines).toEqual([expect.stringMatching(/^users of sandboxes with runc are users of this machine, .* use Linux 5\.19 .* runsc$/)]);
  });

  it("says once that sandboxes with a folder of such a file system have the users of the machine", async () => {
    const disk = mountUntranslatedDisk();
    disks.push(disk);
    const lines: string[] = [];
    const mounts = [{ kind: "bind", source: disk.path, target: "/data", isReadOnly: true }] as const;
    const engine = open({ base: async (layers) => ({ ...(await testBase(layers)), mounts }), log: (line) => lines.push(line) });
    for (const sandbox of [await create(engine), await create(engine)]) expect(statSync(`/proc/${sandbox.pid}`).uid).toBe(0);
    expect(lines).toEqual([expect.stringContaining(`sandboxes with a mounted folder (${disk.path}) are users of this machine`)]);
  });

  it("says that a program reached the limit of processes", async () => {
    const sandbox = await create(open(), {
      command: ["/bin/sh", "-c", "read go < /dev/null; for n in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; exit 3"],
      listening: { kind: "none" },
      resources: { processes: 12 },
    });
    expect((await sandbox.exited).reason).toMatch(/it reached the limit of processes and threads \(its limit is 12\)$/);
  });

  it("tells a process that its own memory limit has ended from one that was ended from outside, also if the command goes on", async () => {
    const engine = open();
    const script = "node -e 'Buffer.alloc(400 * 2 ** 20, 1)'; echo $?";
    const own = await run(engine, await create(engine, { resources: { memoryMb: 128 } }), script);
    expect([own.stdout.toString(), own.interruption]).toEqual(["137\n", null]);
    const sandbox = await create(engine, { resources: { memoryMb: 1_024 } });
    using _ = limitMemoryAbove(sandbox.pid as number, 200 * 2 ** 20);
    const { stdout, exitCode, outOfMemory, interruption } = await run(engine, sandbox, script);
    expect([stdout.toString(), exitCode, outOfMemory]).toEqual(["137\n", 0, false]);
    expect(interruption).toMatch(/^the kernel ended a process of the sandbox for want of memory/);
    expect((await run(engine, sandbox, "kill -9 $$")).interruption).toBeNull();
  });

  it("says that a command was ended by the end of the sandbox", async () => {
    const engine = open();
    const sandbox = await create(engine);
    await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
    const command = await init.spawn({ argv: ["/bin/sh", "-c", "trap 'exit 3' TERM; echo ready; sleep 600 & wait"] });
    await once(command.stdout, "data");
    process.kill(sandbox.pid as number, "SIGTERM");
    command.stdout.resume();
    command.stderr.resume();
    expect(await command.exited).toMatchObject({ exitCode: 3, interruption: "the sandbox was shut down" });
    await sandbox.exited;
  });

  it("says that a program has used up its CPU time", async () => {
    const sandbox = await serve(open(), { resources: { cpuSeconds: 1 } });
    void post(sandbox, "/burn").catch(() => undefined);
    expect((await sandbox.exited).reason).toBe("the program has used up its CPU time limit (its limit is 1 seconds)");
  });

  it("refuses a limit that cannot be set, and leaves nothing behind", async () => {
    const engine = open();
    await expect(create(engine, { resources: { diskMb: 1 } })).rejects.toMatchObject({
      message: expect.stringContaining("the disk limit is 1 MB"),
    });
    await expect(create(engine, { resources: { memoryMb: -5 } })).rejects.toMatchObject({
      message: expect.stringContaining("memoryMb is -5"),
    });
    expect(await engine.list()).toEqual([]);
  });

  it("copies a folder of this machine into a sandbox", async () => {
    using folder = temporaryTree({ "main.js": "console.log('here')" });
    const engine = open();
    const sandbox = await create(engine);
    const path = await sandbox.addFolder(folder.path, signal);
    expect(path).not.toBe(folder.path);
    expect(await run(engine, sandbox, `node ${path}/main.js`)).toMatchObject({ exitCode: 0, stdout: Buffer.from("here\n") });
  });

  it("starts programs in containers that wait for them, with the limits of the sandbox", async () => {
    const engine = open({ poolSize: 1 });
    const { containers, containerOf } = filesOf(opened.at(-1)?.home as string);
    const first = await create(engine);
    // A container with the files of the first waits, and one without files.
    await expect.poll(() => engine.waitingContainers, { timeout: 15_000 }).toBe(2);
    const waiting = containers().filter(({ id }) => id !== containerOf(first));
    const second = await serve(engine, { resources: { memoryMb: 128 } });
    expect(containerOf(second)).toBe(waiting.find(({ layers }) => layers.length > 0)?.id);
    void post(second, "/allocate?mb=400").catch(() => undefined);
    expect((await second.exited).reason).toBe("the program ran out of memory (its limit is 128 MB)");
  });

  it.each(["own", "machine"] as const)(
    "gives the first sandbox of an image a container that waits without files, with %s users",
    async (users) => {
      using layout = temporaryTree();
      const files = { "data/greeting": "hello", "etc/hosts": "of the image", "etc/resolv.conf": ABSENT };
      writeLayout(layout.path, [files], { config: { WorkingDir: "/data" } });
      const engine = open({ poolSize: 1, users });
      const { containers, containerOf } = filesOf(opened.at(-1)?.home as string);
      await create(engine);
      await expect.poll(() => engine.waitingContainers, { timeout: 15_000 }).toBe(2);
      const blank = containers().find(({ layers }) => layers.length === 0)?.id;
      const sandbox = await create(engine, { image: `oci:${layout.path}:image` });
      expect(containerOf(sandbox)).toBe(blank);
      expect(sandbox.commands?.defaults).toEqual({ cwd: "/data", env: {} });
      await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
      const read = async (path: string) => String(await init.files.read({ path }));
      expect([await read("/data/greeting"), await read("/etc/hosts")]).toEqual(["hello", expect.stringContaining(blank ?? "")]);
      expect(await read("/etc/resolv.conf")).toContain("nameserver");
      const mounts = (await read("/proc/self/mountinfo")).split("\n").map((line) => line.split(" "));
      const at = (path: string) => mounts.filter(([, , , , target]) => target === path);
      // Nothing leads to the root that it had before.
      expect(at("/").map(([, , , , , options]) => options)).toEqual([expect.stringMatching(/nosuid,nodev/)]);
      for (const path of ["/proc", "/dev", "/sys", "/.aenv/init"]) expect(at(path), path).toHaveLength(1);
      expect(at("/.aenv")).toEqual([]);
      await init.files.write({ path: "/data/own", content: Buffer.from("kept") });
      const snapshot = await sandbox.snapshots?.take("files", signal);
      const copy = await create(engine, { snapshot: snapshot?.id ?? "" });
      await using other = await connectInit(copy.commands?.address as Sandbox["address"], engine.commands.key, signal);
      expect(String(await other.files.read({ path: "/data/own" }))).toBe("kept");
      await engine.snapshots.remove(snapshot?.id ?? "");
    },
  );

  it("keeps what a program prints while no engine runs, and removes one that ended meanwhile", async () => {
    const engine = open();
    const { home } = opened.pop() as { home: string };
    const [prints, ends] = await Promise.all([serve(engine, { id: "prints" }), serve(engine, { id: "ends" })]);
    await engine.close();
    created.length = 0; // they belong to the next engine
    await post(prints, "/print?line=alone");
    await post(ends, "/exit?code=1").catch(() => undefined);
    const next = open({ home });
    await expect.poll(async () => (await next.list()).map(({ id }) => id), { timeout: 15_000 }).toEqual(["prints"]);
    const [found] = await next.list();
    await expect.poll(() => found?.tail(1), { timeout: 15_000 }).toEqual(["alone"]);
  });

  it("sees the sandboxes of another server process on the same home, which can end them", async () => {
    const engine = open();
    const sandbox = await serve(engine, { id: "seen" });
    const other = fileURLToPath(new URL("fixtures/destroy-all.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [other, opened[0]?.home as string, storeFolder]);
    expect(stdout).toBe("seen\n");
    await sandbox.exited;
    expect(await engine.list()).toEqual([]);
  });

  describeNeeding("runsc", "with gVisor", () => {
    it("leaves its kernel five capabilities for files and one for its own processes, on every thread, and no /proc", async () => {
      const { pid } = await create(open({ runtime: "runsc" }), { id: "capabilities" });
      const tasks = `/proc/${pid}/task`;
      const statuses = readdirSync(tasks).map((task) => readFileSync(join(tasks, task, "status"), "utf8"));
      const sets = statuses.flatMap((status) =>
        [...status.matchAll(/^Cap(Inh|Prm|Eff|Bnd|Amb):\s0*(\w+)$/gm)].map(([, set, caps]) => `${set} ${caps}`),
      );
      // CAP_SYS_PTRACE, and from CAP_CHOWN to CAP_FSETID.
      expect(new Set(sets)).toEqual(new Set(["Inh 0", "Prm 8001f", "Eff 8001f", "Bnd 8001f", "Amb 0"]));
      expect(readFileSync(`/proc/${pid}/mountinfo`, "utf8")).not.toContain(" - proc ");
    });

    it("gives the first sandbox of an image a container that waits without files and was not started", { timeout: 60_000 }, async () => {
      using layout = temporaryTree();
      const files = { "data/greeting": "hello", "etc/hosts": "of the image", "etc/resolv.conf": ABSENT };
      writeLayout(layout.path, [files], { config: { WorkingDir: "/data" } });
      const engine = open({ poolSize: 1, runtime: "runsc" });
      const { containers, containerOf } = filesOf(opened.at(-1)?.home as string);
      await create(engine);
      // Beside it, one with the files of the first.
      await expect.poll(() => engine.waitingContainers, { timeout: 15_000 }).toBe(2);
      const blank = containers().find(({ layers }) => layers.length === 0);
      const sandbox = await create(engine, { image: `oci:${layout.path}:image`, resources: { memoryMb: 128 } });
      expect(containerOf(sandbox)).toBe(blank?.id);
      const connect = ({ commands }: Sandbox) => connectInit(commands?.address as Sandbox["address"], engine.commands.key, signal);
      await using init = await connect(sandbox);
      const read = async (path: string) => String(await init.files.read({ path }));
      expect(await read("/data/greeting")).toBe("hello");
      expect(await read("/etc/hosts")).toContain(`127.0.1.1 ${blank?.id}`);
      expect(await read("/etc/resolv.conf")).toContain("nameserver");
      // What the kernel of the sandbox can reach of this machine: files that it can only read, and nothing of the former root.
      const mounts = readFileSync(`/proc/${blank?.fileServer}/mountinfo`, "utf8").trim().split("\n");
      expect(mounts.map((line) => line.split(" ").slice(4, 6).join(" "))).toEqual([
        expect.stringMatching(/^\/ ro,nosuid,nodev/),
        expect.stringMatching(/^\/\.aenv\/init ro,nosuid,nodev/),
      ]);
      await init.files.write({ path: "/data/own", content: Buffer.from("kept") });
      await init.files.write({ path: "/tmp/own", content: Buffer.from("kept too") });
      for (const fidelity of ["files", "memory"] as const) {
        const snapshot = await sandbox.snapshots?.take(fidelity, signal);
        const copy = await create(engine, { snapshot: snapshot?.id ?? "" });
        await using other = await connect(copy);
        expect(String(await other.files.read({ path: "/data/own" })), fidelity).toBe("kept");
        expect(String(await other.files.read({ path: "/tmp/own" })), fidelity).toBe("kept too");
        await copy.destroy();
        await engine.snapshots.remove(snapshot?.id ?? "");
      }
    });
  });
});
