import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describeNeeding } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type {
  ExportedSnapshot,
  Sandbox,
  SandboxAddress,
  SandboxRuntime,
  SandboxSnapshot,
  SandboxSpec,
  SnapshotPart,
} from "../../engine/engine.ts";
import { isOfSnapshot } from "../../images/layers.ts";
import { connectInit } from "../../init/connection.ts";
import { OtherMachine } from "../../network/testing/other-machine.ts";
import { ControlGroup, findHierarchy } from "../cgroups/group.ts";
import { OciEngine } from "../engine.ts";
import type { OciEngineOptions } from "../options.ts";
import { testBase } from "../testing/base.ts";
import { leftoversOf } from "../testing/leftovers.ts";

// Shared by all engines, because it has a copy of Node.
const storeFolder = mkdtempSync(join(tmpdir(), "aenv-snapshots-store-"));
afterAll(() => rmSync(storeFolder, { recursive: true, force: true }));

const signal = AbortSignal.timeout(300_000);

/** Counts the requests that it has answered. */
const COUNTER = `
let count = 0;
const port = process.argv.at(-1);
require("node:http").createServer((request, response) => {
  if (request.url === "/exit") process.exit(7);
  if (request.url === "/now") return response.end(String(Date.now()));
  response.end(request.url === "/health" ? "" : String(++count));
}).listen(port);
console.log("listening on", port);
`;

function describeSnapshots(runtime: SandboxRuntime, body: (world: ReturnType<typeof openWorld>) => void): void {
  describeNeeding(runtime, `snapshots of ${runtime} sandboxes`, () => body(openWorld(runtime)));
}

function openWorld(runtime: SandboxRuntime) {
  let home = "";
  let engine: OciEngine;
  let count = 0;
  const layersFolder = join(storeFolder, "layers");
  /** What is there of snapshots, complete or not. */
  const snapshotLayers = () =>
    readdirSync(layersFolder).filter((name) => name.startsWith(".") || isOfSnapshot(readRecord(join(layersFolder, name), "layer.json").id));
  const open = (more: Partial<OciEngineOptions> = {}) =>
    new OciEngine({ home, runtime, base: testBase, storeFolder, networkPoolSize: 0, ...more });
  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "aenv-snapshots-"));
    engine = open();
  });
  afterEach(async () => {
    for (const sandbox of await engine.list()) await sandbox.destroy();
  });
  afterAll(async () => {
    const left = await leftoversOf(home);
    await engine.close();
    rmSync(home, { recursive: true, force: true });
    expect(left).toEqual([]);
    expect(snapshotLayers()).toEqual([]);
  });
  return {
    snapshotLayers,
    engine: () => engine,
    reopen: async (more?: Partial<OciEngineOptions>) => {
      await engine.close();
      engine = open(more);
    },
    containers: () => readdirSync(join(home, "oci/containers")).filter((name) => !name.startsWith(".")),
    containerOf: ({ id }: Sandbox): string => JSON.parse(readFileSync(join(home, "oci/sandboxes", id, "record.json"), "utf8")).container,
    frozenContainers: async () => {
      const hierarchy = await findHierarchy();
      const frozen: string[] = [];
      for (const id of readdirSync(join(home, "oci/containers"))) {
        if (id.startsWith(".")) continue;
        const { groupPath } = readRecord(join(home, "oci/containers", id));
        if (await new ControlGroup(hierarchy, groupPath).isFrozen()) frozen.push(id);
      }
      return frozen;
    },
    /** The layers below the changes of a sandbox. */
    layersOf: ({ id }: Sandbox): readonly string[] => {
      const { container } = readRecord(join(home, "oci/sandboxes", id));
      return readRecord(join(home, "oci/containers", String(container))).files.layers;
    },
    layersOfContainer: (id: string): readonly string[] => readRecord(join(home, "oci/containers", id)).files.layers,
    /** A sandbox that only runs commands. */
    createIdle: (snapshot?: string) =>
      engine.create(
        {
          id: `sandbox-${++count}`,
          command: [],
          listening: { kind: "none" },
          variables: {},
          labels: {},
          startTimeoutMs: 60_000,
          ...(snapshot !== undefined && { snapshot }),
        },
        signal,
      ),
    create: (snapshot?: string, more: Partial<SandboxSpec> = {}) =>
      engine.create(
        {
          id: `sandbox-${++count}`,
          command: ["/usr/bin/node", "-e", COUNTER, "--"],
          variables: {},
          labels: {},
          startTimeoutMs: 60_000,
          ...(snapshot !== undefined && { snapshot }),
          ...more,
        },
        signal,
      ),
    sh: async (sandbox: Sandbox, script: string) => {
      await using init = await connectInit(sandbox.commands?.address ?? sandbox.address, engine.commands.key, signal);
      return (await init.run({ argv: ["/bin/sh", "-c", script] })).stdout.toString().trim();
    },
  };
}

function readRecord(folder: string, name = "record.json") {
  return JSON.parse(readFileSync(join(folder, name), "utf8"));
}

async function ask(sandbox: Sandbox, path = "/"): Promise<string> {
  const { host, port } = sandbox.address as { host: string; port: number };
  return (await fetch(`http://${host}:${port}${path}`)).text();
}

for (const runtime of ["runc", "runsc"] as const) {
  describeSnapshots(runtime, ({ engine, create, sh, reopen, snapshotLayers, containers, containerOf, layersOfContainer }) => {
    it("have the files of the sandbox at that moment, and other sandboxes start with them", async () => {
      const parent = await create();
      await sh(parent, "echo one > /kept; echo two > /tmp/kept; rm /opt/test/program.js");
      const snapshot = await parent.snapshots?.take("files", signal);
      expect(snapshot).toMatchObject({ fidelity: "files", bytes: expect.any(Number) });
      await sh(parent, "echo later > /kept");
      const copy = await create(snapshot?.id);
      expect(await sh(copy, "cat /kept /tmp/kept; ls /opt/test")).toBe("one\ntwo");
      expect(await ask(copy)).toBe("1");
      const next = await copy.snapshots?.take("files", signal);
      // A copy keeps its files when the snapshots are gone, and a restarted engine knows those that are not.
      await engine().snapshots.remove(snapshot?.id ?? "");
      expect(snapshotLayers()).toHaveLength(2);
      await reopen();
      expect(await sh((await engine().list()).find(({ id }) => id === copy.id) as Sandbox, "cat /kept")).toBe("one");
      expect(await sh(await create(next?.id), "cat /kept /tmp/kept")).toBe("one\ntwo");
      await engine().snapshots.remove(next?.id ?? "");
      await engine().snapshots.remove(next?.id ?? "");
      await expect(create(next?.id)).rejects.toMatchObject({ code: "snapshot.not_found" });
      for (const sandbox of await engine().list()) await sandbox.destroy();
      expect(snapshotLayers()).toEqual([]);
    }, 120_000);

    it("leave no files behind when they are removed, also if containers wait that have them", async () => {
      await reopen({ poolSize: 1 });
      const parent = await create();
      await sh(parent, "echo one > /kept");
      const snapshot = await parent.snapshots?.take("files", signal);
      await (await create(snapshot?.id)).destroy();
      const isWaiting = () => containers().some((id) => id !== containerOf(parent) && layersOfContainer(id).some(isOfSnapshot));
      await expect.poll(isWaiting, { timeout: 60_000 }).toBe(true);
      await engine().snapshots.remove(snapshot?.id ?? "");
      expect(snapshotLayers()).toEqual([]);
      const temporary = await parent.snapshots?.take("files", signal);
      await (await create(temporary?.id, { isTemporarySnapshot: true })).destroy();
      await engine().fillPools();
      expect(isWaiting()).toBe(false);
      await engine().snapshots.remove(temporary?.id ?? "");
      await reopen();
    }, 120_000);

    it("of a frozen sandbox continue it, so that a call that continued it meanwhile is answered", async () => {
      const parent = await create();
      await sh(parent, "echo one > /kept");
      await parent.freezing?.freeze();
      const answer = ask(parent);
      const snapshot = await parent.snapshots?.take("files", signal);
      expect(await answer).toBe("1");
      expect(await sh(await create(snapshot?.id), "cat /kept")).toBe("one");
      await engine().snapshots.remove(snapshot?.id ?? "");
    }, 120_000);

    it("are refused when they need more space than there is, and nothing of them is left", async () => {
      await reopen({ snapshotSpaceMb: 8 });
      const parent = await create();
      await sh(parent, "dd if=/dev/urandom of=/large bs=1000000 count=12");
      await expect(parent.snapshots?.take("files", signal)).rejects.toMatchObject({
        code: "quota.exceeded",
        message: expect.stringMatching(/has 1[23] MB, and the others on this server 0 MB of 8 MB.* snapshotSpaceMb$/),
      });
      expect(snapshotLayers()).toEqual([]);
      await reopen();
    }, 120_000);
  });
}

/** What a program in a sandbox sees of its files. */
const LOOK = `node -e '
const { mode } = fs.statSync("/");
const mounts = fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").map((line) => line.split(" ").slice(4, 6).join(" ")).sort();
const large = fs.statSync("/large", { throwIfNoEntry: false });
const test = fs.readdirSync("/opt/test");
console.log(JSON.stringify({ mode: mode.toString(8), mounts, large: large && [large.ino, large.size], test, kept: fs.readFileSync("/dir/kept", "utf8") }));
'`;

describeSnapshots("runc", ({ engine, layersOf, createIdle, sh, reopen }) => {
  it.each(["own", "machine"] as const)(
    "of much are not copied if only the init runs, which goes on above them: %s users",
    async (users) => {
      await reopen({ users });
      const parent = await createIdle();
      await sh(parent, `node -e 'fs.chmodSync("/", 0o751); fs.mkdirSync("/dir"); fs.writeFileSync("/dir/kept", "one")'`);
      await sh(parent, `node -e 'fs.rmSync("/opt/test/program.js"); fs.writeFileSync("/large", Buffer.alloc(12e6))'`);
      const [layers, seen] = [layersOf(parent).length, await sh(parent, LOOK)];
      expect(JSON.parse(seen)).toMatchObject({ mode: "40751", kept: "one", test: [] });
      const [first, second] = await Promise.all([parent.snapshots?.take("files", signal), parent.snapshots?.take("files", signal)]);
      expect(layersOf(parent)).toHaveLength(layers + 1);
      expect(first?.bytes).toBeGreaterThan(12e6);
      expect(second?.bytes).toBeLessThan(1e6);
      // The same file, not a copy, and the same mounts.
      expect(await sh(parent, LOOK)).toBe(seen);
      await sh(parent, `node -e 'fs.writeFileSync("/dir/kept", "later"); fs.rmSync("/large")'`);
      const copy = JSON.parse(await sh(await createIdle(first?.id), LOOK));
      expect(copy).toMatchObject({ kept: "one", test: [], large: [expect.any(Number), 12e6] });
      const third = await parent.snapshots?.take("files", signal);
      const later = JSON.parse(await sh(await createIdle(third?.id), LOOK));
      expect(later).toMatchObject({ kept: "later", test: [] });
      expect(later.large).toBeUndefined();
      for (const one of [first, second, third]) await engine().snapshots.remove(one?.id ?? "");
      expect(JSON.parse(await sh(parent, LOOK)).kept).toBe("later");
    },
    120_000,
  );

  it("of much are copied while a program holds files", async () => {
    const parent = await createIdle();
    const before = layersOf(parent).length;
    await sh(parent, "dd if=/dev/zero of=/large bs=1000000 count=12; (sleep 600; echo more) >> /large 2>/dev/null < /dev/null &");
    const snapshot = await parent.snapshots?.take("files", signal);
    expect(layersOf(parent)).toHaveLength(before);
    expect(snapshot?.bytes).toBeGreaterThan(12_000_000);
    await engine().snapshots.remove(snapshot?.id ?? "");
  }, 120_000);
});

const WRITE_KEPT = `
fs.mkdirSync('/kept/deep', { recursive: true });
fs.writeFileSync('/kept/deep/file', 'one');
fs.chownSync('/kept/deep/file', 7, 8);
fs.chmodSync('/kept/deep/file', 0o640);
fs.symlinkSync('deep/file', '/kept/link');
fs.linkSync('/kept/deep/file', '/kept/same');
fs.writeFileSync('/kept/large', crypto.randomBytes(20000000));
fs.rmSync('/opt/test', { recursive: true });
console.log('done');
`;
const SHOW_KEPT = `
const large = fs.readFileSync('/kept/large');
const { mode, uid, gid, nlink } = fs.statSync('/kept/same');
const digest = crypto.createHash('sha256').update(large).digest('hex');
const link = fs.readlinkSync('/kept/link');
console.log(large.length, digest, (mode & 0o777).toString(8), uid, gid, nlink, link, JSON.stringify(fs.readdirSync('/opt')));
`;

/** Another machine: its own layers and snapshots. `key`: the key of the first one's home. */
async function openElsewhere(runtime: SandboxRuntime, first: OciEngine, key: boolean) {
  const home = mkdtempSync(join(tmpdir(), "aenv-elsewhere-"));
  if (key) writeFileSync(join(home, "init-key.pem"), first.commands.key.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  const engine = new OciEngine({ home, runtime, base: testBase, networkPoolSize: 0 });
  return {
    engine,
    create: (snapshot: string) =>
      engine.create(
        { id: "moved", command: ["/usr/bin/node", "-e", COUNTER, "--"], variables: {}, labels: {}, startTimeoutMs: 60_000, snapshot },
        signal,
      ),
    [Symbol.asyncDispose]: async () => {
      for (const sandbox of await engine.list()) await sandbox.destroy();
      const left = await leftoversOf(home);
      await engine.close();
      rmSync(home, { recursive: true, force: true });
      expect(left).toEqual([]);
    },
  };
}

for (const runtime of ["runc", "runsc"] as const) {
  describeSnapshots(runtime, ({ engine, create, sh }) => {
    it("start sandboxes on another machine, with all layers, owners, deleted files and attributes", async () => {
      const parent = await create();
      expect(await sh(parent, `/usr/bin/node -e "${WRITE_KEPT}"`)).toBe("done");
      const show = `/usr/bin/node -e "${SHOW_KEPT}"`;
      const before = await sh(parent, show);
      expect(before).toMatch(/^20000000 [0-9a-f]{64} 640 7 8 2 deep[/]file \[\]$/);
      const snapshot = (await parent.snapshots?.take("files", signal)) as SandboxSnapshot;
      const exported = await engine().snapshots.export(snapshot.id);
      expect(exported.parts.map(({ name }) => name.split(":")[0])).toEqual(["layer sha256", "layer snapshot"]);
      await using elsewhere = await openElsewhere(runtime, engine(), false);
      const description = JSON.parse(JSON.stringify({ facts: exported.facts, parts: exported.parts }));
      const read: string[] = [];
      const open = async (part: SnapshotPart) => {
        read.push(part.name);
        return exported.open(part, signal);
      };
      const moved = await elsewhere.engine.snapshots.import(description, open, signal);
      expect(moved).toMatchObject({ fidelity: "files" });
      await using init = await connectInit(
        (await elsewhere.create(moved.id)).commands?.address as SandboxAddress,
        elsewhere.engine.commands.key,
        signal,
      );
      expect((await init.run({ argv: ["/bin/sh", "-c", show] })).stdout.toString().trim()).toBe(before);
      // What is there already is not read again.
      expect(read).toHaveLength(2);
      await elsewhere.engine.snapshots.import(description, open, signal);
      expect(read).toHaveLength(2);
      await engine().snapshots.remove(snapshot.id);
    }, 180_000);

    it("whose content ends too early are not stored", async () => {
      const parent = await create();
      const snapshot = (await parent.snapshots?.take("files", signal)) as SandboxSnapshot;
      const exported = await engine().snapshots.export(snapshot.id);
      await using elsewhere = await openElsewhere(runtime, engine(), false);
      const broken = async () =>
        Readable.from(
          (async function* () {
            yield Buffer.alloc(512, 1);
            throw new Error("the disk is broken");
          })(),
        );
      await expect(elsewhere.engine.snapshots.import(exported, broken, signal)).rejects.toThrow("the disk is broken");
      await expect(elsewhere.engine.snapshots.import(exported, async () => Readable.from([Buffer.alloc(700, 1)]), signal)).rejects.toThrow(
        "could not be unpacked",
      );
      await engine().snapshots.remove(snapshot.id);
    }, 120_000);
  });
}

describeSnapshots("runc", ({ create }) => {
  it("have no memory, and say so", async () => {
    const parent = await create();
    await expect(parent.snapshots?.take("memory", signal)).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringContaining("use runsc"),
    });
  }, 60_000);
});

describeSnapshots("runsc", ({ engine, create, sh, reopen, containers, containerOf, frozenContainers }) => {
  it("continue the program with its memory, under another name and address, and copies of copies too", async () => {
    const parent = await create();
    await sh(parent, "echo one > /kept");
    expect([await ask(parent), await ask(parent)]).toEqual(["1", "2"]);
    const snapshot = await parent.snapshots?.take("memory", signal);
    expect(snapshot).toMatchObject({ fidelity: "memory", cut: [] });
    const copies = [await create(snapshot?.id), await create(snapshot?.id)];
    expect(await Promise.all(copies.map((copy) => ask(copy)))).toEqual(["3", "3"]);
    expect(await ask(parent)).toBe("3");
    // The time that has passed since then has passed for them too.
    for (const copy of copies) {
      // As the program sees it that goes on, and a new one.
      for (const read of [() => ask(copy, "/now"), () => sh(copy, "node -p 'Date.now()'")]) {
        const before = Date.now();
        const now = Number(await read());
        expect(now).toBeGreaterThan(before - 100);
        expect(now).toBeLessThan(Date.now() + 100);
      }
    }
    const names = await Promise.all([parent, ...copies].map((one) => sh(one, "cat /etc/hosts /proc/sys/kernel/hostname; cat /kept")));
    expect(new Set(names).size).toBe(3);
    expect(names.every((text) => text.endsWith("\none"))).toBe(true);

    const [first] = copies as [Sandbox, Sandbox];
    const second = await first.snapshots?.take("memory", signal);
    await engine().snapshots.remove(snapshot?.id ?? "");
    await parent.destroy();
    const grandchild = await create(second?.id);
    expect(await ask(grandchild)).toBe("4");
    // Files of a copy that were written before and after it was made.
    await sh(grandchild, "echo two > /also");
    const files = await grandchild.snapshots?.take("files", signal);
    expect(await sh(await create(files?.id), "cat /kept /also")).toBe("one\ntwo");
    for (const one of [second, files]) await engine().snapshots.remove(one?.id ?? "");
  }, 180_000);

  it("continue the program on another machine that has the same key, and are refused on others, with the reason", async () => {
    const parent = await create();
    await sh(parent, "echo one > /kept");
    expect([await ask(parent), await ask(parent)]).toEqual(["1", "2"]);
    const snapshot = (await parent.snapshots?.take("memory", signal)) as SandboxSnapshot;
    const exported = await engine().snapshots.export(snapshot.id);
    const open = async (part: SnapshotPart) => exported.open(part, signal);
    {
      await using elsewhere = await openElsewhere("runsc", engine(), true);
      const facts = exported.facts as { memory: object };
      const other = { ...exported, facts: { ...facts, memory: { ...facts.memory, format: "runsc version 1" } } } as ExportedSnapshot;
      await expect(elsewhere.engine.snapshots.import(other, open, signal)).rejects.toThrow(
        /the runtime was 'runsc version 1' and here is 'runsc/,
      );
      await expect(elsewhere.engine.snapshots.import({ ...exported, facts: { engine: "moon" } }, open, signal)).rejects.toThrow(
        "taken by the engine 'moon'",
      );
      const moved = await elsewhere.engine.snapshots.import(exported, open, signal);
      const copy = await elsewhere.create(moved.id);
      expect(await ask(copy)).toBe("3");
      await using init = await connectInit(copy.commands?.address as SandboxAddress, elsewhere.engine.commands.key, signal);
      expect((await init.run({ argv: ["/bin/sh", "-c", "cat /kept"] })).stdout.toString()).toBe("one\n");
    }
    await using stranger = await openElsewhere("runsc", engine(), false);
    await expect(stranger.engine.snapshots.import(exported, open, signal)).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringContaining("init-key.pem"),
    });
    await engine().snapshots.remove(snapshot.id);
  }, 180_000);

  it("continue without connections to other machines, which the snapshot and the log of a copy name", async () => {
    await using other = await OtherMachine.start();
    const script = `
      const [, host, ...ports] = process.argv;
      const datagrams = require("node:dgram").createSocket("udp4");
      datagrams.on("message", (text) => console.log(String(text)));
      for (const [at, name] of ["open", "half open"].entries()) {
        const socket = require("node:net").connect({ host, port: ports[at], allowHalfOpen: true }, () => console.log(name));
        socket.on("end", () => console.log(name, "ended")).on("error", ({ code }) => console.log(name, code)).resume();
      }
      const server = require("node:http").createServer(({ url }, response) => {
        datagrams.send("answer to " + url);
        response.end();
      });
      datagrams.connect(ports[2], host, () => server.listen(process.argv.at(-1)));
    `;
    const [first, second, udp] = [other.port, other.silentPort, other.udpPort].map((port) => `${other.address}:${port}`) as [
      string,
      string,
      string,
    ];
    const egress = { allow: [first, second, udp] };
    const ports = [other.port, other.silentPort, other.udpPort].map(String);
    const parent = await create(undefined, { command: ["/usr/bin/node", "-e", script, "--", other.address, ...ports], egress });
    const linesOf = async (sandbox: Sandbox) => (await sandbox.tail(20)).filter((line) => line !== "answer to /health").toSorted();
    const before = ["half open", "half open ended", "open"];
    await expect.poll(() => linesOf(parent)).toEqual(before);
    const snapshot = await parent.snapshots?.take("memory", signal);
    expect(snapshot?.cut).toEqual([first, second].toSorted());
    const copy = await create(snapshot?.id, { egress });
    const named = `This sandbox is a copy. Its connections to ${snapshot?.cut?.join(", ")} were cut: only the original has them.`;
    await expect.poll(() => linesOf(copy)).toEqual([named, "open ended"]);
    // Datagrams have no connection that could be cut.
    await ask(copy, "/copy");
    await expect.poll(() => linesOf(copy)).toContain("answer to /copy");
    expect(await linesOf(parent)).toEqual(before);
    await engine().snapshots.remove(snapshot?.id ?? "");
  }, 120_000);

  it("tell programs in a copy by a file that they are one", async () => {
    const watch = `
      const fs = require("node:fs");
      const read = () => fs.readFileSync("/.aenv/generation", "utf8").trim();
      console.log("generation", read());
      fs.watch("/.aenv", (_, name) => name === "generation" && console.log("generation", read()));
      require("node:http").createServer((_, response) => response.end("here")).listen(process.argv.at(-1));
    `;
    const parent = await create(undefined, { command: ["/usr/bin/node", "-e", watch, "--"] });
    const lastOf = async (sandbox: Sandbox) => (await sandbox.tail(1))[0];
    expect(await lastOf(parent)).toBe("generation 0");
    const first = await parent.snapshots?.take("memory", signal);
    const copy = await create(first?.id);
    await expect.poll(() => lastOf(copy)).toBe("generation 1");
    const second = await copy.snapshots?.take("memory", signal);
    await expect.poll(async () => lastOf(await create(second?.id))).toBe("generation 2");
    expect(await lastOf(parent)).toBe("generation 0");
    // Files alone are a start from the beginning.
    const files = await copy.snapshots?.take("files", signal);
    expect(await sh(await create(files?.id), "cat /.aenv/generation")).toBe("0");
    for (const one of [first, second, files]) await engine().snapshots.remove(one?.id ?? "");
  }, 120_000);

  it("are not continued where the disk limit is lower than theirs, and their files start there", async () => {
    const [unlimited, limited] = [await create(), await create(undefined, { resources: { diskMb: 64 } })];
    const taken = await Promise.all([unlimited, limited].map((one) => one.snapshots?.take("memory", signal)));
    const [without, with64] = taken.map((one) => one?.id);
    await expect(create(without, { resources: { diskMb: 64 } })).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringMatching(/stored without a disk limit.* at most 64 MB/),
    });
    await expect(create(with64, { resources: { diskMb: 32 } })).rejects.toThrow(/with a disk limit of 64 MB.* at most 32 MB/);
    for (const more of [{}, { resources: { diskMb: 64 } }, { resources: { diskMb: 128 } }])
      expect(await ask(await create(with64, more))).toBe("1");
    const files = await unlimited.snapshots?.take("files", signal);
    const copy = await create(files?.id, { resources: { diskMb: 32 } });
    expect(await sh(copy, "dd if=/dev/zero of=/large bs=1000000 count=48 2>&1")).toMatch(/no space/i);
    for (const id of [without, with64, files?.id]) await engine().snapshots.remove(id ?? "");
  }, 120_000);

  it("notice that the program of a copy ends", async () => {
    const parent = await create();
    const snapshot = await parent.snapshots?.take("memory", signal);
    const copy = await create(snapshot?.id);
    await ask(copy, "/exit").catch(() => undefined);
    expect((await copy.exited).reason).toContain("exit code 7");
    expect(await ask(parent)).toBe("1");
    await copy.destroy();
    await engine().snapshots.remove(snapshot?.id ?? "");
  }, 120_000);

  it("continue in a container that waits for them, which is removed if none comes", async () => {
    await reopen({ poolSize: 1 });
    const parent = await create();
    expect(await ask(parent)).toBe("1");
    const snapshot = await parent.snapshots?.take("memory", signal);
    const first = await create(snapshot?.id, { isAhead: true });
    // A container for a program waits, one for other files, and one for memory.
    await expect.poll(() => engine().waitingContainers, { timeout: 60_000 }).toBe(3);
    const waiting = containers().filter((id) => id !== containerOf(parent) && id !== containerOf(first));
    const second = await create(snapshot?.id, { isAhead: true });
    expect(waiting).toContain(containerOf(second));
    expect([await ask(first), await ask(second)]).toEqual(["2", "2"]);
    expect(await sh(second, "cat /etc/hosts")).toContain(containerOf(second));
    await engine().snapshots.remove(snapshot?.id ?? "");
    for (const one of [parent, first, second]) await one.destroy();
    await reopen();
    expect(containers()).toEqual([]);
  }, 180_000);

  it("are continued ahead by copies that stand still until they are taken, and that are removed with their snapshot", async () => {
    await reopen({ poolSize: 1 });
    const parent = await create();
    expect(await ask(parent)).toBe("1");
    const snapshot = await parent.snapshots?.take("memory", signal);
    const first = await create(snapshot?.id);
    // A container for a program waits, one for other files, one for memory, and a copy.
    await expect.poll(() => engine().waitingContainers, { timeout: 60_000 }).toBe(4);
    const frozen = await frozenContainers();
    expect(frozen).toHaveLength(1);
    const second = await create(snapshot?.id);
    expect(frozen).toEqual([containerOf(second)]);
    expect(await frozenContainers()).not.toContain(containerOf(second));
    expect([await ask(first), await ask(second)]).toEqual(["2", "2"]);
    const randomOf = (sandbox: Sandbox) => sh(sandbox, "head -c 16 /dev/urandom | od -An -tx1; cat /etc/hosts");
    expect(await randomOf(second)).not.toBe(await randomOf(first));
    expect(await sh(second, "cat /etc/hosts")).toContain(containerOf(second));
    await expect.poll(() => engine().waitingContainers, { timeout: 60_000 }).toBe(4);
    await engine().snapshots.remove(snapshot?.id ?? "");
    expect(engine().waitingContainers).toBe(3);
    for (const one of [parent, first, second]) await one.destroy();
    await reopen();
    expect(containers()).toEqual([]);
  }, 180_000);
});
