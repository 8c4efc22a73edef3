import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Duplex, Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { Sandbox, SandboxEngine, SandboxPorts, SandboxSnapshot, SandboxSpec } from "./engine/engine.ts";
import { openProcessTable } from "./host/process-table.ts";

/** What the program in a sandbox does; `fixtures/program.js` implements all of them. */
export type Behaviour = "serve" | "stubborn" | "exit" | "silent" | "deaf" | "missing";

export interface EngineCase {
  /** An engine that keeps its state in `home`. Two engines on the same home are used one after the other. */
  readonly open: (home: string) => SandboxEngine;
  readonly command: (behaviour: Behaviour) => readonly string[];
  /** The processes of a sandbox, for engines whose sandboxes number their processes themselves. */
  readonly processes?: (sandbox: Sandbox) => Promise<readonly number[]>;
  /** Time limit of a start, for engines that need longer than others. */
  readonly startTimeoutMs?: number;
  /** Names of what is left of sandboxes; called after they are destroyed. */
  readonly leftovers?: (home: string) => readonly string[] | Promise<readonly string[]>;
  /** Claims that do not apply to this engine, with the reason. */
  readonly skip?: Partial<Record<Claim, string>>;
  /** Why the whole suite cannot run here. */
  readonly skipAll?: string | false;
}

const claims = [
  "a sandbox answers when create resolves",
  "a sandbox has the capabilities that its engine states",
  "a program that exits at once is a failed start with its last output",
  "a program that never listens is a failed start after the timeout",
  "a program that listens but never answers is a failed start after the timeout",
  "a program that does not exist is a failed start that names it",
  "a start that is cancelled leaves nothing behind",
  "the list has exactly the sandboxes that run",
  "destroy is idempotent",
  "destroy ends a program that ignores SIGTERM",
  "destroy ends children and grandchildren",
  "destroy ends a child that forked twice, left its session and cleared its environment, where the engine finds strays",
  "twenty sandboxes are created at once",
  "an id in use is refused, and is free again after destroy",
  "tail returns the last printed lines",
  "follow yields each line as it is printed, until the sandbox ends",
  "follow ends when its signal fires",
  "a sandbox that exits reports why",
  "a sandbox inherits no environment variable",
  "sandboxes outlive their engine, and the next engine finds them",
  "connect reaches a port on which a process of the sandbox listens",
  "connect refuses a port on which no process of the sandbox listens, even if another process does",
  "a sandbox starts with the files of a snapshot, also on an engine that has imported it, where the engine takes snapshots",
  "nothing is left behind",
] as const;

export type Claim = (typeof claims)[number];

const OUTER = "AENV_CONFORMANCE_SECRET";

/** The suite that every engine passes. */
export function describeEngine(name: string, engineCase: EngineCase): void {
  const { open, command, processes, leftovers, startTimeoutMs = 15_000, skip = {}, skipAll = false } = engineCase;
  describe.skipIf(skipAll !== false)(`engine ${name}${skipAll === false ? "" : ` (${skipAll})`}`, () => {
    const ends: (() => unknown)[] = [];
    /** Starts that a test which failed has not waited for. */
    const starting = new Set<Promise<unknown>>();
    let made = 0;

    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
      delete process.env[OUTER];
    });

    /** An engine whose sandboxes are destroyed after the test, also if it fails. */
    function start(home = newHome()): { engine: SandboxEngine; home: string } {
      const engine = open(home);
      ends.push(async () => {
        await Promise.allSettled(starting);
        for (const sandbox of await engine.list()) await sandbox.destroy();
        await engine.close();
      });
      return { engine, home };
    }

    function newHome(): string {
      const home = mkdtempSync(join(tmpdir(), "aenv-engine-"));
      ends.push(() => rmSync(home, { recursive: true, force: true }));
      return home;
    }

    function spec(behaviour: Behaviour, more: Partial<SandboxSpec> = {}): SandboxSpec {
      return { id: `sandbox-${++made}`, command: command(behaviour), variables: {}, labels: {}, startTimeoutMs, ...more };
    }

    function make(engine: SandboxEngine, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
      const start = engine.create(spec("serve", more), new AbortController().signal);
      starting.add(start);
      const forget = () => starting.delete(start);
      start.then(forget, forget);
      return start;
    }

    /** Starts children; those of an engine that numbers processes itself are all found by it. */
    async function childrenOf(sandbox: Sandbox): Promise<{ inGroup: readonly number[]; strays: readonly number[] }> {
      const before = (await processes?.(sandbox)) ?? [];
      const children = (await ask(sandbox, "POST", "/children")) as { inGroup: number[]; strays: number[] };
      if (processes === undefined) return children;
      const after = (await processes(sandbox)).filter((pid) => !before.includes(pid));
      expect(after.length).toBeGreaterThanOrEqual(children.inGroup.length + children.strays.length);
      return { inGroup: after, strays: [] };
    }

    async function daemonOf(sandbox: Sandbox): Promise<number> {
      const before = (await processes?.(sandbox)) ?? [];
      const { pid } = (await ask(sandbox, "POST", "/daemon")) as { pid: number };
      return (await processes?.(sandbox))?.find((one) => !before.includes(one)) ?? pid;
    }

    /** The processes that still run. */
    function runningOf(engine: SandboxEngine, sandbox: Sandbox, pids: readonly number[]): () => number[] {
      const table = openProcessTable();
      // Without `processes`, only process 1 of an isolated sandbox is known, with which all others end.
      const isHidden = engine.can.isolates && processes === undefined;
      const visible = isHidden ? [sandbox.pid].filter((pid) => pid !== null) : pids;
      return () => visible.filter((pid) => table.find(pid)?.isZombie === false);
    }

    function claim(title: Claim, body: () => Promise<void>): void {
      const reason = skip[title];
      it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (${reason})`, body, 4 * startTimeoutMs);
    }

    claim("a sandbox answers when create resolves", async () => {
      const { engine } = start();
      const sandbox = await make(engine, { id: "first", labels: { owner: "ada" } });
      expect(await ask(sandbox, "GET", "/health")).toEqual({ success: true });
      expect(sandbox).toMatchObject({ id: "first", labels: { owner: "ada" } });
    });

    claim("a sandbox has the capabilities that its engine states", async () => {
      const { engine } = start();
      const { commands, ports, freezing, egress, snapshots } = await make(engine);
      expect({ commands: !!commands, ports: !!ports, freezes: !!freezing, egress: !!egress, snapshots: !!snapshots }).toEqual({
        commands: engine.commands !== undefined,
        ports: engine.can.ports,
        freezes: engine.can.freezes,
        egress: engine.egress?.changes === true,
        snapshots: engine.snapshots !== undefined,
      });
      for (const fidelity of snapshots?.fidelities ?? []) expect(engine.snapshots?.fidelities).toContain(fidelity);
    });

    for (const [title, behaviour, words, timeoutMs] of [
      ["a program that exits at once is a failed start with its last output", "exit", /nothing to serve here/, startTimeoutMs],
      ["a program that never listens is a failed start after the timeout", "silent", /within 400 ms/, 400],
      ["a program that listens but never answers is a failed start after the timeout", "deaf", /within 700 ms/, 700],
      ["a program that does not exist is a failed start that names it", "missing", /no such program|not found/, startTimeoutMs],
    ] as const) {
      claim(title, async () => {
        const { engine, home } = start();
        const failure = engine.create(spec(behaviour, { startTimeoutMs: timeoutMs }), new AbortController().signal);
        await expect(failure).rejects.toMatchObject({ code: "sandbox.start_failed", message: expect.stringMatching(words) });
        expect(await engine.list()).toEqual([]);
        expect((await leftovers?.(home)) ?? []).toEqual([]);
      });
    }

    claim("a start that is cancelled leaves nothing behind", async () => {
      const { engine, home } = start();
      const early = AbortSignal.abort();
      await expect(engine.create(spec("serve"), early)).rejects.toMatchObject({ code: "request.cancelled" });
      for (const afterMs of [0, 5, 20, 80]) {
        const giveUp = new AbortController();
        const making = engine.create(spec("deaf"), giveUp.signal);
        setTimeout(() => giveUp.abort(), afterMs);
        await expect(making).rejects.toMatchObject({ code: "request.cancelled" });
      }
      expect(await engine.list()).toEqual([]);
      expect((await leftovers?.(home)) ?? []).toEqual([]);
    });

    claim("the list has exactly the sandboxes that run", async () => {
      const { engine } = start();
      expect(await engine.list()).toEqual([]);
      const [a, b, c] = await Promise.all(["a", "b", "c"].map((id) => make(engine, { id, labels: { id } })));
      expect((await engine.list()).map((sandbox) => [sandbox.id, sandbox.labels]).sort()).toEqual(
        ["a", "b", "c"].map((id) => [id, { id }]),
      );
      await a?.destroy();
      expect(await idsOf(engine)).toEqual(["b", "c"]);
      await ask(b as Sandbox, "POST", "/exit?code=0");
      await b?.exited;
      expect(await engine.list()).toEqual([c]);
    });

    claim("destroy is idempotent", async () => {
      const { engine } = start();
      const sandbox = await make(engine);
      await Promise.all([sandbox.destroy(), sandbox.destroy()]);
      await sandbox.destroy();
      expect(await engine.list()).toEqual([]);
      expect((await sandbox.exited).reason).toMatch(/destroyed/);
      expect(await sandbox.tail(10)).toEqual([]);
    });

    claim("destroy ends a program that ignores SIGTERM", async () => {
      const { engine } = start();
      const sandbox = await engine.create(spec("stubborn"), new AbortController().signal);
      await sandbox.destroy();
      expect(await engine.list()).toEqual([]);
      await expect(ask(sandbox, "GET", "/health")).rejects.toThrow();
    });

    claim("destroy ends children and grandchildren", async () => {
      const { engine, home } = start();
      const sandbox = await make(engine);
      const { inGroup, strays } = await childrenOf(sandbox);
      const table = openProcessTable();
      // Where processes can be searched by their environment, those that left the group are found too.
      const areFound = engine.can.findsStrays || table.findsMarked;
      const running = runningOf(engine, sandbox, [...inGroup, ...(areFound ? strays : [])]);
      expect(running()).not.toEqual([]);
      await sandbox.destroy();
      await expect.poll(running).toEqual([]);
      expect((await leftovers?.(home)) ?? []).toEqual([]);
      if (!areFound) for (const pid of strays) process.kill(pid);
    });

    claim(
      "destroy ends a child that forked twice, left its session and cleared its environment, where the engine finds strays",
      async () => {
        const { engine } = start();
        const sandbox = await make(engine);
        const running = runningOf(engine, sandbox, [await daemonOf(sandbox)]);
        try {
          expect(running()).not.toEqual([]);
          await sandbox.destroy();
          if (engine.can.findsStrays) await expect.poll(running).toEqual([]);
        } finally {
          for (const left of running()) process.kill(left, "SIGKILL");
        }
      },
    );

    claim("twenty sandboxes are created at once", async () => {
      const { engine, home } = start();
      const sandboxes = await Promise.all(Array.from({ length: 20 }, () => make(engine)));
      expect(new Set(sandboxes.map(({ address }) => JSON.stringify(address))).size).toBe(20);
      await Promise.all(sandboxes.map((sandbox) => ask(sandbox, "GET", "/health")));
      expect(await engine.list()).toHaveLength(20);
      await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
      expect(await engine.list()).toEqual([]);
      expect((await leftovers?.(home)) ?? []).toEqual([]);
    });

    claim("an id in use is refused, and is free again after destroy", async () => {
      const { engine } = start();
      const outcomes = await Promise.allSettled([make(engine, { id: "same" }), make(engine, { id: "same" })]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      await expect(make(engine, { id: "same" })).rejects.toMatchObject({ code: "sandbox.exists" });
      const [sandbox] = await engine.list();
      expect(await ask(sandbox as Sandbox, "GET", "/health")).toEqual({ success: true });
      await sandbox?.destroy();
      const next = await make(engine, { id: "same" });
      await sandbox?.destroy();
      expect(await ask(next, "GET", "/health")).toEqual({ success: true });
    });

    claim("tail returns the last printed lines", async () => {
      const { engine } = start();
      const sandbox = await make(engine);
      for (const line of ["one", "two", "three", "vier → fünf"]) await ask(sandbox, "POST", `/print?line=${encodeURIComponent(line)}`);
      await expect.poll(() => sandbox.tail(2)).toEqual(["three", "vier → fünf"]);
      expect(await sandbox.tail(100)).toEqual(["one", "two", "three", "vier → fünf"]);
      expect(await sandbox.tail(0)).toEqual([]);
    });

    claim("follow yields each line as it is printed, until the sandbox ends", async () => {
      const { engine } = start();
      const sandbox = await make(engine);
      await ask(sandbox, "POST", "/print?line=before");
      await expect.poll(() => sandbox.tail(1)).toEqual(["before"]);
      const lines: string[] = [];
      const following = (async () => {
        for await (const line of sandbox.follow(new AbortController().signal)) lines.push(line);
      })();
      await ask(sandbox, "POST", "/print?line=first");
      await expect.poll(() => lines).toEqual(["first"]);
      await ask(sandbox, "POST", "/print?line=second");
      // The last line is on standard error, and no engine has to keep the order of two streams.
      await expect.poll(() => lines).toEqual(["first", "second"]);
      await ask(sandbox, "POST", "/exit?code=0&line=last");
      await following;
      expect(lines).toEqual(["first", "second", "last"]);
    });

    claim("follow ends when its signal fires", async () => {
      const { engine } = start();
      const sandbox = await make(engine);
      const leave = new AbortController();
      const lines: string[] = [];
      const following = (async () => {
        for await (const line of sandbox.follow(leave.signal)) lines.push(line);
      })();
      await ask(sandbox, "POST", "/print?line=first");
      await expect.poll(() => lines).toEqual(["first"]);
      leave.abort();
      await following;
      expect(await ask(sandbox, "GET", "/health")).toEqual({ success: true });
    });

    claim("a sandbox that exits reports why", async () => {
      const { engine } = start();
      const sandbox = await make(engine);
      await ask(sandbox, "POST", `/exit?code=7&line=${encodeURIComponent("Error: the shop is closed")}`);
      const { at, reason } = await sandbox.exited;
      expect(reason).toMatch(/exit code 7.*the shop is closed/);
      expect(at).toBeInstanceOf(Date);
      expect(await sandbox.tail(1)).toEqual(["Error: the shop is closed"]);
      await sandbox.destroy();
      expect((await sandbox.exited).reason).toBe(reason);
    });

    claim("a sandbox inherits no environment variable", async () => {
      process.env[OUTER] = "secret";
      const { engine } = start();
      const sandbox = await make(engine, { variables: { GREETING: "hello", LANG: "de_DE.UTF-8" } });
      const { variables } = (await ask(sandbox, "GET", "/environment")) as { variables: Record<string, string> };
      expect(variables).toMatchObject({ GREETING: "hello", LANG: "de_DE.UTF-8" });
      expect(Object.keys(variables).sort()).toEqual([...EXPECTED.filter((key) => key in variables), "GREETING"].sort());
    });

    claim("sandboxes outlive their engine, and the next engine finds them", async () => {
      const { engine, home } = start();
      const labels = { owner: "ada", env: "shop@1.0.0" };
      const made = await Promise.all(["left", "right"].map((id) => make(engine, { id, labels })));
      await engine.close();
      const { engine: next } = start(home);
      const found = [...(await next.list())].sort((a, b) => (a.id < b.id ? -1 : 1));
      expect(found.map(({ id, labels, address, pid }) => ({ id, labels, address, pid }))).toEqual(
        made.map(({ id, address, pid }) => ({ id, labels, address, pid })),
      );
      const [left, right] = found as [Sandbox, Sandbox];
      await expect(make(next, { id: "left" })).rejects.toMatchObject({ code: "sandbox.exists" });
      await ask(left, "POST", "/exit?code=1&line=stopped");
      expect((await left.exited).reason).toMatch(/stopped/);
      expect(await next.list()).toEqual([right]);
      await ask(right, "POST", "/print?line=kept");
      await expect.poll(() => right.tail(1)).toEqual(["kept"]);
      await Promise.all(found.map((sandbox) => sandbox.destroy()));
      expect(await next.list()).toEqual([]);
      expect((await leftovers?.(home)) ?? []).toEqual([]);
    });

    claim("connect reaches a port on which a process of the sandbox listens", async () => {
      const { engine } = start();
      expect(engine.can.ports).toBe(true);
      const sandbox = await make(engine);
      for (const [by, host] of [
        ["self", "127.0.0.1"],
        ["self", "0.0.0.0"],
        ["self", "::"],
        ["self", "::1"],
        ["child", "127.0.0.1"],
        ["stray", "127.0.0.1"],
      ] as const) {
        const { port } = (await ask(sandbox, "POST", `/listen?by=${by}&host=${host}`)) as { port: number };
        expect(await textFrom(await connectTo(sandbox, port))).toBe(by);
      }
    });

    claim("connect refuses a port on which no process of the sandbox listens, even if another process does", async () => {
      const { engine } = start();
      const [sandbox, other] = await Promise.all([make(engine), make(engine)]);
      const { port } = (await ask(other, "POST", "/listen?by=self&host=127.0.0.1")) as { port: number };
      const outside = createServer((socket) => socket.end("outside")).listen(0, "127.0.0.1");
      ends.push(() => outside.close());
      await once(outside, "listening");
      const own = (outside.address() as AddressInfo).port;
      for (const one of [port, own]) await expect(connectTo(sandbox, one)).rejects.toMatchObject({ code: "sandbox.port_closed" });
      await ask(other, "POST", "/stop-listening");
      await expect.poll(() => connectTo(other, port).catch(({ code }) => code)).toBe("sandbox.port_closed");
      await sandbox.destroy();
      await expect(connectTo(sandbox, own)).rejects.toMatchObject({ code: "sandbox.port_closed" });
    });

    claim(
      "a sandbox starts with the files of a snapshot, also on an engine that has imported it, where the engine takes snapshots",
      async () => {
        const { signal } = new AbortController();
        const { engine } = start();
        if (!engine.snapshots?.fidelities.includes("files")) return;
        const parent = await make(engine);
        await ask(parent, "POST", "/file?line=one");
        const snapshot = (await parent.snapshots?.take("files", signal)) as SandboxSnapshot;
        expect(snapshot).toMatchObject({ fidelity: "files", bytes: expect.any(Number) });
        await ask(parent, "POST", "/file?line=two");
        expect(await ask(await make(engine, { snapshot: snapshot.id }), "GET", "/file")).toEqual({ line: "one" });
        const exported = await engine.snapshots?.export(snapshot.id);
        if (exported !== undefined) {
          const { engine: other } = start();
          const description = JSON.parse(JSON.stringify({ facts: exported.facts, parts: exported.parts }));
          const moved = await other.snapshots?.import(description, async (part) => exported.open(part, signal), signal);
          expect(await ask(await make(other, { snapshot: moved?.id ?? "" }), "GET", "/file")).toEqual({ line: "one" });
          await expect(other.snapshots?.import({ ...description, facts: {} }, async () => Readable.from([]), signal)).rejects.toMatchObject(
            {
              code: "sandbox.unsupported",
            },
          );
          await other.snapshots?.remove(moved?.id ?? "");
        }
        await engine.snapshots?.remove(snapshot.id);
        await engine.snapshots?.remove(snapshot.id);
        await expect(make(engine, { snapshot: snapshot.id })).rejects.toMatchObject({ code: "snapshot.not_found" });
      },
    );

    claim("nothing is left behind", async () => {
      const { engine, home } = start();
      const sandboxes = [await make(engine), await make(engine)];
      await ask(sandboxes[0] as Sandbox, "POST", "/exit?code=1");
      await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
      expect((await leftovers?.(home)) ?? []).toEqual([]);
    });
  });
}

/** Variables that an engine may set. */
const EXPECTED = ["PATH", "HOME", "TMPDIR", "LANG", "HOSTNAME", "AENV_SANDBOX", "AENV_TYPE", "POD_NAME", "POD_NAMESPACE"];

async function idsOf(engine: SandboxEngine): Promise<string[]> {
  return (await engine.list()).map(({ id }) => id).sort();
}

function connectTo(sandbox: Sandbox, port: number): Promise<Duplex> {
  return (sandbox.ports as SandboxPorts).connect(port, new AbortController().signal);
}

async function textFrom(socket: Duplex): Promise<string> {
  let text = "";
  for await (const piece of socket.setEncoding("utf8")) text += piece;
  return text;
}

function ask({ address }: Sandbox, method: string, path: string): Promise<unknown> {
  const where = address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const sent = request({ ...where, method, path, agent: false, timeout: ANSWER_TIMEOUT_MS }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", reject).on("end", () => resolve(JSON.parse(text)));
    });
    // Packets to an address that nobody has any more may be dropped without an answer.
    sent.on("timeout", () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
    sent.on("error", reject).end();
  });
}

const ANSWER_TIMEOUT_MS = 10_000;
