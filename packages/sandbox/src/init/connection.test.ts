import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createConnection, createServer } from "node:net";
import { loadavg, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectInit, type InitConnection } from "./connection.ts";
import { sendFolder } from "./folder.ts";
import { initProgram } from "./program.ts";
import { StartedInit } from "./testing/start-init.ts";

describeNeeding("go", "the init, through its client", () => {
  let folder: string;
  let program: string;
  let init: StartedInit;
  let connection: InitConnection;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "aenv-init-"));
    program = await initProgram(process.arch as "x64" | "arm64");
    init = new StartedInit(program);
  }, 300_000);

  afterAll(async () => {
    await init?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  beforeEach(async () => {
    connection = await init.connect();
  });

  afterEach(() => connection.close());

  const sh = (script: string) => ({ argv: ["/bin/sh", "-c", script] });

  function newFolder(): string {
    return mkdtempSync(join(folder, "files-"));
  }

  describe("connections", () => {
    it("says its version and its requests", () => {
      expect(connection.hello).toMatchObject({ init: "0.1.0", abilities: expect.arrayContaining(["spawn", "watch"]) });
    });

    it("knows no requests of a launcher, which mount and start programs of a machine", async () => {
      const unknown = { code: "unknown_request" };
      await expect(connection.launch({ argv: ["true"] }, {})).rejects.toMatchObject(unknown);
      for (const request of ["mount_root", "restack_root"] as const)
        await expect(connection.mount(request, {}, AbortSignal.timeout(10_000))).rejects.toMatchObject(unknown);
    });

    it("refuses a client with another key", async () => {
      const { privateKey } = generateKeyPairSync("ed25519");
      const attempt = connectInit(init.address, privateKey, AbortSignal.timeout(10_000));
      await expect(attempt).rejects.toMatchObject({ code: "sandbox.lost", message: expect.stringContaining("not signed with the key") });
    });

    it("fails what is under way when the connection is closed, and all later requests", async () => {
      const process = await connection.spawn({ ...sh("sleep 60"), deadlineMs: 60_000 });
      await connection.close();
      await expect(process.exited).rejects.toMatchObject({ code: "sandbox.lost" });
      await expect(connection.stats()).rejects.toMatchObject({ code: "sandbox.lost" });
      await using again = await init.connect();
      await again.signal(process.id, "SIGKILL", { group: true });
      expect(await (await again.attach(process.id)).exited).toMatchObject({ signal: "SIGKILL" });
    });
  });

  describe("folders", () => {
    it("copies a folder once, for every user, and complete", async () => {
      using tree = temporaryTree({ "main.js": "code", "größe/data.txt": "x".repeat(100_000), empty: "" });
      symlinkSync("../main.js", join(tree.path, "größe/link"));
      chmodSync(join(tree.path, "main.js"), 0o700);
      const parent = newFolder();
      const send = () => sendFolder(connection, tree.path, AbortSignal.timeout(10_000), { parent });
      const [path, same] = await Promise.all([send(), send()]);
      expect(same).toBe(path);
      expect(readdirSync(parent)).toEqual([basename(path)]);
      expect(readFileSync(join(path, "größe/link"), "utf8")).toBe("code");
      expect(readFileSync(join(path, "größe/data.txt"), "utf8")).toHaveLength(100_000);
      expect(statSync(join(path, "main.js")).mode & 0o777).toBe(0o755);
      writeFileSync(join(path, "main.js"), "changed inside");
      expect(await send()).toBe(path);
      expect(readFileSync(join(path, "main.js"), "utf8")).toBe("changed inside");
    });
  });

  describe("processes", () => {
    it("runs a command with its directory and variables", async () => {
      const cwd = newFolder();
      const output = await connection.run({ ...sh('echo "$PWD $NAME"; echo problem >&2; exit 3'), cwd, env: { NAME: "value" } });
      expect(output).toMatchObject({ exitCode: 3, signal: null, timedOut: false });
      expect(output.stdout.toString()).toBe(`${cwd} value\n`);
      expect(output.stderr.toString()).toBe("problem\n");
    });

    it("passes more input and output than the windows hold", async () => {
      const content = randomBytes(3_000_000);
      const process = await connection.spawn({ argv: ["cat"], stdin: true });
      process.stdin.end(content);
      expect((await process.output()).stdout.equals(content)).toBe(true);
    });

    it("makes a process wait while its output is not read, and nothing else", async () => {
      const process = await connection.spawn(sh("head -c 5000000 /dev/zero"));
      expect((await connection.run(sh("echo other"))).stdout.toString()).toBe("other\n");
      expect((await process.output()).stdout).toHaveLength(5_000_000);
    });

    it("ends a process at its deadline and returns what it wrote", async () => {
      const output = await connection.run({ ...sh("echo before; sleep 60"), deadlineMs: 200, killGraceMs: 1_000 });
      expect(output).toMatchObject({ exitCode: null, signal: "SIGTERM", timedOut: true });
      expect(output.stdout.toString()).toBe("before\n");
    });

    it("gives a process a terminal, with size, input and signals by keys", async () => {
      // Without noflsh, Linux sends the signal and drops the terminal's output after it: also what the trap has printed by then.
      const script = "stty noflsh; trap 'stty size; exit 5' INT; read line; tty; echo \"got $line\"; while :; do sleep 0.02; done";
      const process = await connection.spawn({ ...sh(script), pty: { rows: 11, cols: 44 } });
      await connection.resize(process.id, { rows: 22, cols: 88 });
      process.stdin.write("text\n");
      let shown = "";
      let isInterrupted = false;
      for await (const part of process.stdout) {
        shown += part;
        // Once: a second one would end the command of the trap.
        if (isInterrupted || !shown.includes("got text")) continue;
        isInterrupted = true;
        process.stdin.write("\x03");
      }
      expect(shown.replace("^C", "")).toMatch(/\/dev\/pts\/\d+\r\ngot text\r\n22 88\r\n/);
      expect(await process.exited).toMatchObject({ exitCode: 5 });
    });

    it("kills a command when its caller aborts", async () => {
      const controller = new AbortController();
      const running = connection.run({ ...sh("sleep 60"), abort: controller.signal });
      await connection.stats();
      controller.abort(new Error("not needed any more"));
      await expect(running).rejects.toThrow("not needed any more");
    });

    it("does not pass open files of its own to processes", async () => {
      const { stdout } = await connection.run({ argv: ["ls", "/proc/self/fd"] });
      expect(stdout.toString()).toBe("0\n1\n2\n3\n"); // 3 is the folder that ls reads
    });

    it("lists processes, and forgets those whose end was read", async () => {
      const process = await connection.spawn({ ...sh("read line"), stdin: true });
      const find = async () => (await connection.listProcesses()).find(({ id }) => id === process.id);
      expect(await find()).toMatchObject({ pid: process.pid, isMain: false, ending: null, argv: ["/bin/sh", "-c", "read line"] });
      process.stdin.end("\n");
      await process.output();
      expect(await find()).toBeUndefined();
    });

    it("lets another client go on with the input and output of a process", async () => {
      const process = await connection.spawn({ argv: ["cat"], stdin: true });
      process.stdin.write("one ");
      await once(process.stdout, "data");
      await connection.close();
      await using again = await init.connect();
      const attached = await again.attach(process.id);
      attached.stdin.end("two");
      expect((await attached.output()).stdout.toString()).toBe("two");
    });

    it("loses no output of a process when its client ends the connection", async () => {
      let [received, isDone, client] = ["", false, connection];
      let counting = await client.spawn(sh("for n in $(seq 20000); do echo $n; done"));
      while (true) {
        counting.stdout.on("data", (data: Buffer) => {
          received += data.toString();
        });
        counting.exited.then(
          () => {
            isDone = true;
          },
          () => undefined,
        );
        await Promise.race([once(counting.stdout, "data"), counting.exited]);
        await client.end();
        if (isDone) break;
        client = await init.connect();
        counting = await client.attach(counting.id);
      }
      expect(received).toBe(Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(""));
    });

    it("gives a process to the client that attached last, however soon after another one left", async () => {
      const ends = Array.from({ length: 40 }, async () => {
        const left = await connection.spawn({ ...sh("sleep 60"), deadlineMs: 60_000 });
        left.exited.catch(() => {});
        left.detach();
        const attached = await connection.attach(left.id);
        await connection.signal(left.id, "SIGKILL", { group: true });
        return (await attached.exited).signal;
      });
      expect(new Set(await Promise.all(ends))).toEqual(new Set(["SIGKILL"]));
    });

    it("says why a program was not started", async () => {
      await expect(connection.run({ argv: ["no-such-program"] })).rejects.toMatchObject({ code: "no_program" });
      await expect(connection.run({ argv: ["sh"], cwd: "/no/such" })).rejects.toMatchObject({ code: "no_cwd" });
      await expect(connection.signal(999_999, "SIGTERM")).rejects.toMatchObject({ code: "no_process" });
    });
  });

  describe("files", () => {
    it("writes, appends, reads, and reads a part", async () => {
      const path = join(newFolder(), "new/file");
      const content = randomBytes(1_500_000);
      await connection.files.write({ path, content, mkdirs: true, mode: 0o600 });
      await connection.files.write({ path, content: parts("the", " end"), append: true });
      expect(readFileSync(path).equals(Buffer.concat([content, Buffer.from("the end")]))).toBe(true);
      expect((await connection.files.read({ path })).length).toBe(1_500_007);
      expect((await connection.files.read({ path, offset: 1_500_000, length: 3 })).toString()).toBe("the");
      expect(await connection.files.stat({ path })).toMatchObject({ type: "file", size: 1_500_007, mode: 0o600 });
    });

    it("leaves a file as it was if the new content fails on the way", async () => {
      const path = join(newFolder(), "file");
      writeFileSync(path, "old");
      await expect(connection.files.write({ path, content: failing() })).rejects.toThrow("no more");
      expect(readFileSync(path, "utf8")).toBe("old");
    });

    it("gives a request up when its caller aborts", async () => {
      const controller = new AbortController();
      const changes = await connection.files.watch({ path: newFolder(), abort: controller.signal });
      controller.abort(new Error("not needed any more"));
      await expect(changes.next()).rejects.toThrow("not needed any more");
    });

    it("stops reading a file when the reader leaves", async () => {
      const path = join(newFolder(), "file");
      writeFileSync(path, Buffer.alloc(2_000_000));
      const { info, content } = await connection.files.open({ path });
      for await (const _ of content) break;
      expect(info.size).toBe(2_000_000);
      expect((await connection.stats()).processes).toBeGreaterThan(0);
    });

    it("lists, makes, renames and removes", async () => {
      const root = newFolder();
      await connection.files.mkdir({ root, path: "a/b", parents: true });
      await expect(connection.files.mkdir({ root, path: "a" })).rejects.toMatchObject({ code: "exists" });
      await connection.files.write({ root, path: "/a/file", content: Buffer.from("x") });
      symlinkSync("file", join(root, "a/link"));
      const { files, isTruncated } = await connection.files.list({ root, path: "/", recursive: true });
      expect(files.map(({ path, type }) => `${path} ${type}`)).toEqual(["a directory", "a/b directory", "a/file file", "a/link link"]);
      expect(isTruncated).toBe(false);
      expect(await connection.files.list({ root, path: "a", limit: 1 })).toMatchObject({ files: [{ path: "b" }], isTruncated: true });
      await connection.files.rename({ root, path: "a/file", to: "moved" });
      await expect(connection.files.remove({ root, path: "a" })).rejects.toMatchObject({ code: "not_empty" });
      await connection.files.remove({ root, path: "a", recursive: true });
      expect(readdirSync(root)).toEqual(["moved"]);
      await expect(connection.files.stat({ root, path: "gone" })).rejects.toMatchObject({ code: "not_found" });
    });

    it("refuses every path and link that leads out of the root", async () => {
      const root = newFolder();
      symlinkSync(folder, join(root, "out"));
      for (const path of ["../x", "out/x", "/../x"]) {
        await expect(connection.files.read({ root, path })).rejects.toMatchObject({ code: "outside_root" });
        const write = connection.files.write({ root, path, content: Buffer.from("x"), mkdirs: true });
        await expect(write).rejects.toMatchObject({ code: "outside_root" });
      }
      expect(existsSync(join(folder, "x"))).toBe(false);
    });

    it("reports changes until the reader leaves", async () => {
      const path = newFolder();
      mkdirSync(join(path, "below"));
      const changes = await connection.files.watch({ path, recursive: true });
      writeFileSync(join(path, "below/file"), "x");
      for await (const change of changes) {
        expect(change).toEqual({ event: "create", path: "below/file" });
        break;
      }
    });

    it("packs a folder and unpacks it elsewhere", async () => {
      const [from, to] = [newFolder(), newFolder()];
      mkdirSync(join(from, "bin"));
      writeFileSync(join(from, "bin/tool"), "x".repeat(500_000), { mode: 0o755 });
      await connection.files.unpack({ path: to, archive: await connection.files.pack({ path: from }) });
      expect(readFileSync(join(to, "bin/tool"), "utf8")).toHaveLength(500_000);
      expect(statSync(join(to, "bin/tool")).mode & 0o777).toBe(0o755);
      const damaged = connection.files.unpack({ path: to, archive: Buffer.alloc(2_000, "x") });
      await expect(damaged).rejects.toMatchObject({ code: "invalid_archive" });
    });
  });

  it("connects to a port of the loopback interface", async () => {
    const echo = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
    await once(echo, "listening");
    const { port } = echo.address() as AddressInfo;
    const socket = await connection.connect(port);
    const content = randomBytes(1_000_000);
    socket.end(content);
    const received: Buffer[] = [];
    for await (const part of socket) received.push(part);
    expect(Buffer.concat(received).equals(content)).toBe(true);
    echo.close();
    await once(echo, "close");
    await expect(connection.connect(port)).rejects.toMatchObject({ code: "port_closed" });
  });

  it("listens on a port of the loopback interface, and hands over connections until it is closed", async () => {
    const content = randomBytes(1_000_000);
    const listening = await connection.listen(0, (accepted) => accepted.pipe(accepted));
    const programs = [1, 2, 3].map(() => createConnection({ host: "127.0.0.1", port: listening.port }));
    const answers = programs.map(async (program) => {
      program.write(content);
      const received: Buffer[] = [];
      let bytes = 0;
      for await (const part of program.iterator({ destroyOnReturn: false })) {
        received.push(part);
        bytes += part.length;
        if (bytes === content.length) break;
      }
      return Buffer.concat(received).equals(content);
    });
    expect(await Promise.all(answers)).toEqual([true, true, true]);
    await expect(connection.listen(listening.port, () => undefined)).rejects.toMatchObject({ code: "port_in_use" });
    const ends = programs.map((program) =>
      once(
        program.on("error", () => undefined),
        "close",
      ),
    );
    listening.close();
    await Promise.all([listening.closed, ...ends]);
    const later = createConnection({ host: "127.0.0.1", port: listening.port });
    await expect(once(later, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("says that an init of an earlier version cannot listen", async () => {
    const abilities = connection.hello.abilities.filter((name) => name !== "listen");
    const older = Object.assign(Object.create(connection) as InitConnection, { hello: { ...connection.hello, abilities } });
    await expect(older.listen(0, () => undefined)).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringContaining("create a new instance"),
    });
  });

  it("reports load and idleness", async () => {
    const loads = [loadavg()[0] ?? 0];
    const stats = await connection.stats();
    loads.push(loadavg()[0] ?? 0);
    expect(stats.processes).toBeGreaterThan(0);
    expect(stats.memoryKb).toBeGreaterThan(0);
    expect(loads.some((load) => Math.abs(load - stats.load) < 0.02)).toBe(true);
    // Here, the processes of the whole machine count. Tests of sandboxes show what an idle one reports.
    if (stats.runnable > 0) expect(stats.idleMs).toBe(0);
    else expect(stats.idleMs).toBeGreaterThanOrEqual(0);
  });

  it("reseeds after a restore, and closes older connections", async () => {
    await using older = await init.connect();
    const report = await connection.restored({ entropy: randomBytes(64) });
    expect(report).toMatchObject({ hostname: "kept", clock: "kept", randomness: expect.stringMatching(/^(reseeded|mixed)$/) });
    await older.closed;
    await using newer = await init.connect();
    expect(newer.hello.generation).toBe(report.generation);
  });

  it("ends with the main program and its exit code, after its output", async () => {
    const own = new StartedInit(program);
    await using link = await own.connect();
    const main = await link.startMain(sh("echo last words; exit 9"));
    expect((await main.output()).stdout.toString()).toBe("last words\n");
    expect(await own.exited).toBe(9);
    await own.stop();
  });

  it("shuts down: ends processes that obey, and kills the others", async () => {
    const own = new StartedInit(program);
    await using link = await own.connect();
    const stubborn = await link.spawn(sh("trap '' TERM; echo ready; while :; do sleep 60; done"));
    await once(stubborn.stdout, "data");
    await link.shutdown({ graceMs: 100 });
    expect(await own.exited).toBe(0);
    // A killed process needs a moment to end.
    await expect.poll(() => existsSync(`/proc/${stubborn.pid}/exe`), { interval: 5, timeout: 10_000 }).toBe(false);
    await own.stop();
  });
});

async function* parts(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

async function* failing(): AsyncGenerator<Buffer> {
  yield Buffer.from("half");
  throw new Error("no more");
}
