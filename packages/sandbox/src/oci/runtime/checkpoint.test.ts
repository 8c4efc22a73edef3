import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { InitConnection } from "../../init/connection.ts";
import type { RemoteProcess } from "../../init/process.ts";
import { type TestRoot, type TestSandbox, TestSandboxes } from "./testing/test-sandboxes.ts";

const FORKS = 8;

/** 100 MB that are not all alike, a counter, numbers of the kernel, and an answer for each connection. */
const SERVER = `
const kept = Array.from({ length: 100 }, (_, at) => Buffer.alloc(2 ** 20, String(at)));
let count = 0;
require("node:http").createServer((request, response) => {
  const sum = kept.reduce((sum, part, at) => sum + (part.toString("latin1", 7, 7 + 2 * String(at).length).includes(String(at)) ? 1 : 0), 0);
  const random = Buffer.alloc(8);
  const source = require("node:fs").openSync("/dev/urandom");
  require("node:fs").readSync(source, random);
  response.end(JSON.stringify({ count: ++count, whole: sum === 100, label: process.argv[1], random: random.toString("hex") }));
}).listen(8000, () => console.log("up"));
`;

describeNeeding("runsc", "a checkpoint of a running sandbox", () => {
  let sandboxes: TestSandboxes;
  let count = 0;
  const connections: InitConnection[] = [];
  const root: TestRoot = {
    root: "machine",
    mounts: [{ kind: "bind", source: process.execPath, target: "/node", isReadOnly: true }],
  };

  beforeAll(async () => {
    sandboxes = await TestSandboxes.open("runsc");
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

  const checkpoint = async (sandbox: TestSandbox): Promise<string> => {
    const folder = join(sandboxes.folder, `checkpoint-${++count}`);
    await sandboxes.runtime.checkpoint?.(sandbox.id, folder, AbortSignal.timeout(60_000));
    return folder;
  };

  const restore = async (folder: string, hostname: string): Promise<{ sandbox: TestSandbox; connection: InitConnection }> => {
    const sandbox = sandboxes.prepare({ ...root, hostname });
    await sandboxes.runtime.restore?.(sandbox.id, sandbox.bundle, folder, {
      logPath: sandbox.logPath,
      signal: AbortSignal.timeout(60_000),
    });
    const connection = await connect(sandbox);
    await connection.restored({ entropy: randomBytes(32) });
    return { sandbox, connection };
  };

  /** Sends a line to an interactive program, and returns what it prints up to the line that ends with `done`. */
  const ask = async (program: RemoteProcess, line: string): Promise<string> => {
    program.stdin.write(`${line}\n`);
    let printed = "";
    while (!printed.includes("done")) printed += String((await once(program.stdout, "data"))[0]);
    return printed.replace("done", "").trim();
  };

  const get = async (connection: InitConnection, port: number): Promise<{ readonly random: string }> => {
    const stream = await connection.connect(port);
    stream.write("GET / HTTP/1.0\r\n\r\n");
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part);
    return JSON.parse(Buffer.concat(parts).toString().split("\r\n\r\n")[1] ?? "");
  };

  const LINES = {
    bash: "count=$((count + 1)); echo $name $count $(cat /tmp/file) $(hostname) $(jobs | wc -l) $(head -c 8 /dev/urandom | od -An -tx1 | tr -d ' ') done",
    python: "import os; total += 1; print(total, os.urandom(8).hex(), open('/tmp/file').read().strip(), 'done', flush=True)",
  };

  it("continues a shell with a job, a server with 100 MB of memory and a Python interpreter in 8 copies, and in a copy of a copy", async () => {
    const parent = await sandboxes.start({ ...root, hostname: "parent" });
    const connection = await connect(parent);
    const spawn = (...argv: string[]) => connection.spawn({ argv, stdin: true });
    const [bash, python, server] = await Promise.all([
      spawn("bash"),
      spawn("python3", "-i", "-q", "-c", "total = 0"),
      spawn("/node", "-e", SERVER, "label"),
    ]);
    await once(server.stdout, "data");
    await ask(bash, "name=before; echo one > /tmp/file; sleep 1000 & echo done");
    expect(await ask(bash, LINES.bash)).toMatch(/^before 1 one parent 1 [0-9a-f]{16}$/);
    expect(await ask(python, LINES.python)).toMatch(/^1 [0-9a-f]{16} one$/);
    expect(await get(connection, 8000)).toMatchObject({ count: 1, whole: true, label: "label" });

    const verify = async (copy: InitConnection, hostname: string, calls: number) => {
      const [shell, interpreter] = await Promise.all([copy.attach(bash.id), copy.attach(python.id)]);
      const printed = await ask(shell, LINES.bash);
      expect(printed).toMatch(new RegExp(`^before ${calls} \\w+ ${hostname} 1 [0-9a-f]{16}$`));
      const counted = await ask(interpreter, LINES.python);
      expect(counted).toMatch(new RegExp(`^${calls} [0-9a-f]{16} \\w+$`));
      const served = await get(copy, 8000);
      expect(served).toMatchObject({ count: calls, whole: true, label: "label" });
      // The files and the memory are of one moment, and those of the copies differ from now on.
      await ask(shell, `echo ${hostname} > /tmp/file; echo done`);
      return [printed.split(" ").at(-1), counted.split(" ")[1], served.random];
    };

    const first = await checkpoint(parent);
    const copies = [];
    for (let at = 0; at < FORKS; at++) copies.push(await restore(first, `fork${at}`));
    const random = (await Promise.all(copies.map(({ connection: copy }, at) => verify(copy, `fork${at}`, 2)))).flat();
    expect(new Set(random).size).toBe(3 * FORKS);
    expect(new Set(copies.map(({ sandbox }) => JSON.stringify(sandbox.address))).size).toBe(FORKS);

    // The parent goes on with its own clients, and saw nothing of this.
    expect(await ask(bash, LINES.bash)).toMatch(/^before 2 one parent 1 /);

    const second = await checkpoint(copies[3]?.sandbox as TestSandbox);
    const grandchild = await restore(second, "grandchild");
    const shell = await grandchild.connection.attach(bash.id);
    expect(await ask(shell, LINES.bash)).toMatch(/^before 3 fork3 grandchild 1 /);
  }, 120_000);

  it("cuts connections to other machines in the copy", async () => {
    const parent = await sandboxes.start(root);
    const connection = await connect(parent);
    const outside = createServer().listen(0);
    await once(outside, "listening");
    const host = (parent.address as { host: string }).host.replace(/\d+$/, (last) => String(Number(last) - 1));
    const { port } = outside.address() as { port: number };
    const accepted = once(outside, "connection");
    const client = await connection.spawn({
      argv: [
        "python3",
        "-u",
        "-c",
        `import socket\ns = socket.create_connection(("${host}", ${port}))\nprint("up")\nprint("received", s.recv(9))`,
      ],
    });
    await accepted;
    const copy = await restore(await checkpoint(parent), "fork");
    const again = await copy.connection.attach(client.id);
    // It neither waits for ever nor receives anything.
    expect((await again.output()).stdout.toString().replace("up\n", "")).toMatch(/^(received b''\n)?$/);
    outside.close();
  }, 60_000);

  it("has the changed files as an archive in the form of overlayfs", async () => {
    const parent = await sandboxes.start(root);
    const connection = await connect(parent);
    await connection.run({ argv: ["sh", "-c", "mkdir /new; echo text > /new/file; rm /etc/passwd"] });
    const archive = join(sandboxes.folder, "changes.tar");
    await sandboxes.runtime.writeChanges?.(parent.id, archive, AbortSignal.timeout(60_000));
    const listed = execFileSync("tar", ["--list", "--verbose", "--file", archive], { encoding: "utf8" });
    expect(listed).toMatch(/^-rw-r--r-- 0\/0 +5 .* \.\/new\/file$/m);
    // A deleted file is a device 0:0.
    expect(listed).toMatch(/^c.* 0,0 .* \.\/etc\/passwd$/m);
    expect((await connection.run({ argv: ["cat", "/new/file"] })).stdout.toString()).toBe("text\n");
  });
});
