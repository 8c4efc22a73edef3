import { spawnSync } from "node:child_process";
import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

interface Bomb {
  readonly name: string;
  /** A function of an amount: it prints `done` when it has that much. */
  readonly script: string;
  /** More than the limit, and less than the higher one. */
  readonly amount: number;
  /** What the program says when the limit stops it; null if it may also be killed. */
  readonly says: RegExp | null;
  /** What the owner finds in the events of the instance. */
  readonly event: RegExp;
  readonly withRunsc?: Partial<Bomb>;
}

const LIMITS = { memoryMb: 200, diskMb: 64, processes: 60 };
const HIGHER = { memoryMb: 800, diskMb: 256, processes: 4_000 };

const processes: Bomb = {
  name: "a fork bomb",
  script: `async (amount) => {
    const { spawn } = require("child_process");
    const next = () => new Promise((resolve) => {
      spawn("sleep", ["1000"], { stdio: "ignore" }).on("spawn", () => resolve(1)).on("error", () => resolve(0));
    });
    for (let count = 0; count < amount; ) for (const one of await Promise.all(Array.from({ length: 20 }, next))) count += one;
  }`,
  amount: 90,
  says: null,
  event: /limit: the sandbox cannot start more processes and threads \(its limit is 60\)|it reached the limit of processes and threads/,
  // There the limit is that of gVisor's own processes and threads, of which it may have 512 more. Its memory may be used up first.
  withRunsc: { amount: 500, event: /ran out of memory|processes and threads/ },
};

const memory: Bomb = {
  name: "a memory bomb",
  script: `async (amount) => {
    const all = [];
    for (; all.length * 16 < amount; await new Promise((resolve) => setTimeout(resolve, 5))) all.push(Buffer.alloc(2 ** 24, 1));
  }`,
  amount: 300,
  says: null,
  event: /no more memory \(its limit is 200 MB\)|ran out of memory \(its limit is 200 MB\)/,
};

const disk: Bomb = {
  name: "a program that fills the disk",
  script: `async (amount) => {
    const file = fs.openSync("/filled", "w");
    try { for (let mb = 0; mb < amount; mb++) fs.writeSync(file, Buffer.alloc(2 ** 20, 1)); return; } catch (error) { console.log(error.code); }
    for (;; await new Promise((resolve) => setTimeout(resolve, 10))) try { fs.writeSync(file, Buffer.alloc(2 ** 16, 1)); } catch {}
  }`,
  amount: 100,
  says: /ENOSPC/,
  event: /limit: the disk of the sandbox is full \(its limit is 64 MB\)/,
};

const files: Bomb = {
  name: "a program that uses up its file handles",
  script: `async (amount) => {
    const all = [];
    try { while (all.length < amount) all.push(fs.openSync("/etc/hosts")); return; } catch (error) { console.log(error.code); }
    for (;; await new Promise((resolve) => setTimeout(resolve, 10))) for (let n = 0; n < 1e6; n++);
  }`,
  amount: 17_000,
  says: /EMFILE/,
  event: /limit: a process of the sandbox cannot open more files \(its limit is 16384\)/,
};

/** Infinite if there is no limit. */
const machineFiles = Number.parseInt(spawnSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).stdout, 10) || Number.POSITIVE_INFINITY;

const places = {
  runc: { name: "the engine oci with runc", bombs: [processes, memory, disk, files], flags: { engine: "oci", runtime: "runc" } },
  runsc: { name: "the engine oci with runsc", bombs: [processes, memory, disk, files], flags: { engine: "oci", runtime: "runsc" } },
  // It limits no disk, and says so.
  docker: { name: "the engine docker", bombs: [processes, memory, files], flags: { engine: "docker" } },
} as const;

for (const needed of ["runc", "runsc", "docker"] as const) {
  const { name: place, bombs, flags } = places[needed];
  describeNeeding(needed, `in a sandbox of ${place}`, () => {
    let daemon: DockerDaemon | undefined;
    let platform: Platform;
    let higher: Platform;
    let ref: string;
    let neighbour: string;

    beforeAll(async () => {
      if (needed === "docker") daemon = await startDocker();
      const open = ({ diskMb, ...limits }: typeof LIMITS) => {
        const more = daemon === undefined ? { diskMb } : { dockerSocket: daemon.socket };
        return startPlatform({ flags: { ...flags, sandboxesReady: 0, ...limits, ...more } });
      };
      platform = await open(LIMITS);
      higher = await open(HIGHER);
      ref = await publish(platform, projects.probe);
      await publish(higher, projects.probe);
      neighbour = (await platform.create(ref)).id;
    }, 180_000);
    afterAll(async () => {
      await Promise.all([platform?.close(), higher?.close()]);
      await daemon?.[Symbol.asyncDispose]();
    }, 60_000);

    for (const { withRunsc, ...rest } of bombs) {
      const bomb: Bomb = { ...rest, ...(needed === "runsc" && withRunsc) };

      it(`${bomb.name} is stopped with the reason in the events, while the server and a neighbour answer as fast as before`, async () => {
        const { id } = await platform.create(ref);
        const before = await latency(20);
        const running = start(platform, id, bomb);
        const during: number[] = [];
        const events = async () =>
          ((await platform.demand("GET", `/env-instance/${id}/events`)) as { what: string }[]).map(({ what }) => what);
        await expect
          .poll(
            async () => {
              during.push(await latency(3));
              return (await events()).join("\n");
            },
            { timeout: 60_000, interval: 20 },
          )
          .toMatch(bomb.event);
        while (during.length < 20) during.push(await latency(3));
        // The bomb has no limit of processors. Twice as long is usual on two of them, and they have other work too.
        expect(median(during)).toBeLessThan(Math.max(4 * before, before + 15));
        running.abort();
        const output = await running.output;
        expect(output).not.toContain("done");
        if (bomb.says !== null) expect(output).toMatch(bomb.says);
        await platform.demand("DELETE", `/env-instance/${id}`);
        expect(await callTool(urlOf(platform, neighbour), "count")).toMatchObject({ isError: false });
      }, 120_000);

      it.skipIf(bomb.name === files.name && machineFiles <= files.amount)(
        `${bomb.name} is not stopped where the limit is higher`,
        async () => {
          // That of open files is the same in all sandboxes, so this one runs outside.
          if (bomb.name === files.name) return expect(outside(bomb)).toBe("done\n");
          const { id } = await higher.create(ref);
          expect(await start(higher, id, bomb).output).toContain("done");
          await higher.demand("DELETE", `/env-instance/${id}`);
        },
        120_000,
      );
    }

    /** The median time of calls to the neighbour and to the server, each of which must succeed. */
    async function latency(calls: number): Promise<number> {
      const times: number[] = [];
      for (let call = 0; call < calls; call++) {
        const begun = performance.now();
        expect(await callTool(urlOf(platform, neighbour), "count", {}, { signal: AbortSignal.timeout(20_000) })).toMatchObject({
          isError: false,
        });
        expect((await fetch(`${platform.controlUrl}/health`, { signal: AbortSignal.timeout(20_000) })).status).toBe(200);
        times.push(performance.now() - begun);
      }
      return median(times);
    }
  });
}

function programOf({ script, amount }: Bomb): readonly string[] {
  return ["-e", `(${script})(${amount}).then(() => { console.log("done"); process.exit(); })`];
}

/** Runs a bomb in a sandbox; what it printed until it is aborted or has ended. */
function start(platform: Platform, id: string, bomb: Bomb): { readonly output: Promise<string>; abort(): void } {
  const stop = new AbortController();
  const output = (async () => {
    let text = "";
    try {
      const response = await fetch(`${platform.controlUrl}/env-instance/${id}/exec`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ command: ["node", ...programOf(bomb)] }),
        signal: stop.signal,
      });
      for await (const part of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) text += part;
    } catch {}
    return text;
  })();
  return { output, abort: () => stop.abort() };
}

function outside(bomb: Bomb): string {
  return spawnSync(process.execPath, programOf(bomb), { encoding: "utf8" }).stdout;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
