import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

interface Bomb {
  readonly name: string;
  /** What the program says when the limit stops it; null if it may also be killed. */
  readonly says: RegExp | null;
  readonly script: string;
  /** What the owner finds in the events of the instance. */
  readonly event: RegExp;
  readonly eventWithRunsc?: RegExp;
}

const bombs: readonly Bomb[] = [
  {
    name: "a fork bomb",
    script: `
      const { spawn } = require("child_process");
      const again = () => spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" }).on("error", () => {});
      setInterval(() => { for (let n = 0; n < 20; n++) again(); }, 20);`,
    says: null,
    event: /limit: the sandbox cannot start more processes and threads \(its limit is 60\)|it reached the limit of processes and threads/,
    // There the limit is that of gVisor's own threads, and its memory may be used up first.
    eventWithRunsc: /ran out of memory|processes and threads/,
  },
  {
    name: "a memory bomb",
    script: "const all = []; setInterval(() => all.push(Buffer.alloc(2 ** 24, 1)), 5);",
    says: null,
    event: /no more memory \(its limit is 200 MB\)|ran out of memory \(its limit is 200 MB\)/,
  },
  {
    name: "a program that fills the disk",
    script: `
      const file = fs.openSync("/filled", "w");
      try { for (;;) fs.writeSync(file, Buffer.alloc(2 ** 20, 1)); } catch (error) { console.log(error.code); }
      setInterval(() => { try { fs.writeSync(file, Buffer.alloc(2 ** 16, 1)); } catch {} }, 10);`,
    says: /ENOSPC/,
    event: /limit: the disk of the sandbox is full \(its limit is 64 MB\)/,
  },
  {
    name: "a program that uses up its file handles",
    script: `
      const all = [];
      try { for (;;) all.push(fs.openSync("/etc/hosts")); } catch (error) { console.log(error.code); }
      setInterval(() => { for (let n = 0; n < 1e6; n++); }, 10);`,
    says: /EMFILE/,
    event: /limit: a process of the sandbox cannot open more files \(its limit is 16384\)/,
  },
];

for (const runtime of ["runc", "runsc"] as const)
  describeNeeding(runtime, `in a sandbox of the engine oci with ${runtime}`, () => {
    let platform: Platform;
    let ref: string;
    let neighbour: string;

    beforeAll(async () => {
      const limits = { memoryMb: 200, diskMb: 64, processes: 60, cpus: 0.5 };
      platform = await startPlatform({ flags: { engine: "oci", runtime, sandboxesReady: 0, ...limits } });
      ref = await publish(platform, projects.probe);
      neighbour = (await platform.create(ref)).id;
    }, 120_000);
    afterAll(() => platform?.close(), 60_000);

    for (const { name, script, says, event, eventWithRunsc = event } of bombs)
      it(`${name} is stopped with the reason in the events, while the server and a neighbour answer every call`, async () => {
        const { id } = await platform.create(ref);
        const before = await latency(20);
        const running = start(id, script);
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
          .toMatch(runtime === "runsc" ? eventWithRunsc : event);
        for (let more = 0; more < 5; more++) during.push(await latency(3));
        // The bomb has half a processor. What is left for the others is a matter of the machine, so the bound is far away.
        expect(median(during) / before).toBeLessThan(20);
        running.abort();
        if (says !== null) expect(await running.output).toMatch(says);
        await platform.demand("DELETE", `/env-instance/${id}`);
        expect(await callTool(urlOf(platform, neighbour), "count")).toMatchObject({ isError: false });
      }, 120_000);

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

    /** Runs a script of Node in the sandbox; what it printed until it is aborted or has ended. */
    function start(id: string, script: string): { readonly output: Promise<string>; abort(): void } {
      const stop = new AbortController();
      const output = (async () => {
        let text = "";
        try {
          const response = await fetch(`${platform.controlUrl}/env-instance/${id}/exec`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ command: ["node", "-e", script] }),
            signal: stop.signal,
          });
          for await (const part of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) text += part;
        } catch {}
        return text;
      })();
      return { output, abort: () => stop.abort() };
    }
  });

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
