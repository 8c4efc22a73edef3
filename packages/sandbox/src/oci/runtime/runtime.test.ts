import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createConnection, createServer } from "node:net";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { identityOf, openProcessTable } from "../../host/process-table.ts";
import { connectInit, type InitConnection } from "../../init/connection.ts";
import { findHierarchy } from "../cgroups/group.ts";
import { CommandRuntime } from "./command-runtime.ts";
import { runc } from "./dialect.ts";
import { openRuntime, probeRuntime } from "./open.ts";
import { type TestSandbox, TestSandboxes } from "./testing/test-sandboxes.ts";

for (const program of ["runc", "crun", "runsc"] as const) {
  describeNeeding(program, `the runtime ${program}, with the init as process 1`, () => {
    let sandboxes: TestSandboxes;
    const connections: InitConnection[] = [];

    beforeAll(async () => {
      sandboxes = await TestSandboxes.open(program === "runsc" ? "runsc" : "runc", program);
    }, 300_000);
    afterEach(async () => {
      for (const connection of connections.splice(0)) await connection.close();
      for (const id of await sandboxes.runtime.list()) await sandboxes.runtime.remove(id);
    });
    afterAll(() => sandboxes?.close());

    const connect = async (sandbox: TestSandbox): Promise<InitConnection> => {
      const connection = await sandboxes.connect(sandbox);
      connections.push(connection);
      return connection;
    };
    const sh = async (connection: InitConnection, script: string) =>
      (await connection.run({ argv: ["/bin/sh", "-c", script] })).stdout.toString().trim();

    it("serves files and statistics in an empty root", async () => {
      const connection = await connect(await sandboxes.start({ root: "empty" }));
      await connection.files.write({ path: "/a/b", content: Buffer.from("text"), mkdirs: true });
      expect((await connection.files.read({ path: "/a/b" })).toString()).toBe("text");
      expect(await connection.stats()).toMatchObject({ processes: 0, oomKills: 0 });
      await expect(connection.run({ argv: ["/bin/sh"] })).rejects.toThrow("/bin/sh");
    });

    it("runs commands, terminals and servers in a root with programs", async () => {
      const connection = await connect(await sandboxes.start({ root: "machine" }));
      expect(await sh(connection, "echo $$ $(hostname) $PPID")).toMatch(/^\d+ inside 1$/);
      expect(await connection.run({ argv: ["sh", "-c", "exit 7"] })).toMatchObject({ exitCode: 7 });
      const terminal = await connection.run({ argv: ["sh", "-c", "test -t 0 && stty size"], pty: { rows: 33, cols: 44 } });
      expect(terminal.stdout.toString().trim()).toBe("33 44");

      const server = await connection.spawn({
        argv: [
          "python3",
          "-c",
          "import socket; s = socket.create_server(('', 80)); print('up', flush=True); s.accept()[0].sendall(b'hello')",
        ],
      });
      await once(server.stdout, "data");
      const answer: Buffer[] = [];
      for await (const part of await connection.connect(80)) answer.push(part);
      expect(Buffer.concat(answer).toString()).toBe("hello");
    });

    it("refuses a connection that another address has relayed", async () => {
      const sandbox = await sandboxes.start({ root: "empty" });
      await connect(sandbox);
      const relay = createServer((client) => {
        const init = createConnection(sandbox.address as { host: string; port: number });
        client.pipe(init).on("error", () => client.destroy());
        init.pipe(client).on("error", () => init.destroy());
      }).listen(0, "127.0.0.1");
      await once(relay, "listening");
      const { port } = relay.address() as AddressInfo;
      const attempt = connectInit({ kind: "tcp", host: "127.0.0.1", port }, sandboxes.key, AbortSignal.timeout(10_000));
      await expect(attempt).rejects.toMatchObject({ code: "sandbox.lost", message: expect.stringContaining("for the address") });
      relay.close();
    });

    it("freezes and thaws", async () => {
      const sandbox = await sandboxes.start({ root: "machine" });
      const connection = await connect(sandbox);
      await sandboxes.runtime.freeze(sandbox.id);
      await sandboxes.runtime.freeze(sandbox.id);
      let isAnswered = false;
      const answer = sh(connection, "echo on").finally(() => {
        isAnswered = true;
      });
      // A second sandbox starts meanwhile, which takes much longer than the answer of one that is not frozen.
      await connect(await sandboxes.start({ root: "empty" }));
      expect(isAnswered).toBe(false);
      await sandboxes.runtime.thaw(sandbox.id);
      expect(await answer).toBe("on");
    });

    it("removes a frozen sandbox and what it started, and nothing is left", async () => {
      const sandbox = await sandboxes.start({ root: "machine" });
      const connection = await connect(sandbox);
      await connection.spawn({ argv: ["sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000"] });
      const again = await openRuntime(sandboxes.runtime.name, { root: join(sandboxes.folder, "runtime"), program });
      expect([await again.isRunning(sandbox.id), await again.list()]).toEqual([true, [sandbox.id]]);
      await sandboxes.runtime.freeze(sandbox.id);
      await again.remove(sandbox.id);
      await again.remove(sandbox.id);
      expect([await again.isRunning(sandbox.id), await again.list()]).toEqual([false, []]);
      expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(sandboxes.folder);
      // `find` fails if a group of another test disappears meanwhile.
      expect(spawnSync("find", ["/sys/fs/cgroup", "-name", sandbox.id], { encoding: "utf8" }).stdout).toBe("");
      expect(readdirSync(join(sandboxes.folder, "runtime/state"))).toEqual([]);
    });

    it("notices that process 1 has ended", async () => {
      const sandbox = await sandboxes.start({ root: "empty" });
      const connection = await connect(sandbox);
      await connection.shutdown({ graceMs: 0 });
      await connection.closed;
      await expect.poll(() => sandboxes.runtime.isRunning(sandbox.id)).toBe(false);
    });

    it("says why a sandbox does not start, and leaves nothing", async () => {
      const sandbox = sandboxes.prepare({ root: "empty" });
      const config = JSON.parse(readFileSync(join(sandbox.bundle, "config.json"), "utf8"));
      config.root.path = "/does/not/exist";
      writeFileSync(join(sandbox.bundle, "config.json"), JSON.stringify(config));
      const start = sandboxes.runtime.run(sandbox.id, sandbox.bundle, { logPath: sandbox.logPath, signal: AbortSignal.timeout(60_000) });
      await expect(start).rejects.toMatchObject({ code: "sandbox.start_failed", message: expect.stringContaining("/does/not/exist") });
      expect(await sandboxes.runtime.list()).toEqual([]);
    });

    it("cancels a start", async () => {
      const sandbox = sandboxes.prepare({ root: "empty" });
      const start = sandboxes.runtime.run(sandbox.id, sandbox.bundle, { logPath: sandbox.logPath, signal: AbortSignal.abort() });
      await expect(start).rejects.toMatchObject({ name: "AbortError" });
      expect(await sandboxes.runtime.list()).toEqual([]);
    });
  });
}

describeNeeding("crun", "the runtime runc, where crun is installed", () => {
  it("starts sandboxes with crun", async () => {
    using tree = temporaryTree();
    expect(await openRuntime("runc", { root: tree.path })).toMatchObject({ name: "runc", program: expect.stringMatching(/\/crun$/) });
  });
});

describeNeeding("control-groups", "a start that fails", () => {
  it("leaves none of the processes that the program has started, also those that left its group", async () => {
    using tree = temporaryTree({ "bundle/config.json": JSON.stringify({ linux: { cgroupsPath: `/aenv-test-${process.pid}/one` } }) });
    const [pids, program] = [join(tree.path, "pids"), join(tree.path, "program")];
    // As crun does: a part of it goes on in a session of its own.
    writeFileSync(program, `#!/bin/sh\nsetsid sh -c 'echo $$ > ${pids}; sleep 1000' &\nwhile [ ! -s ${pids} ]; do :; done\nexit 1\n`, {
      mode: 0o755,
    });
    const runtime = new CommandRuntime({ dialect: runc, program, root: tree.path, hierarchy: await findHierarchy() });
    const options = { logPath: join(tree.path, "log"), signal: AbortSignal.timeout(30_000) };
    await expect(runtime.run("one", join(tree.path, "bundle"), options)).rejects.toMatchObject({ code: "sandbox.start_failed" });
    const table = openProcessTable();
    await expect.poll(() => identityOf(table, Number(readFileSync(pids, "utf8")))).toBeNull();
    expect(await runtime.list()).toEqual([]);
  });
});

describe("a runtime that is not here", () => {
  it("is refused with the next step", async () => {
    expect(await probeRuntime("runsc", "/nowhere/runsc")).toMatch(/Linux|root|no program '\/nowhere\/runsc'; install gVisor/);
    await expect(openRuntime("runc", { root: "/nowhere", program: "/nowhere/runc" })).rejects.toMatchObject({
      code: "sandbox.unsupported",
    });
  });
});
