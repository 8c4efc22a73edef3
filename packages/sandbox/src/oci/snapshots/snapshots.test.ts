import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Sandbox, SandboxRuntime } from "../../engine.ts";
import { connectInit } from "../../init/connection.ts";
import { OciEngine } from "../engine.ts";
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
  const open = (snapshotMb?: number) =>
    new OciEngine({ home, runtime, base: testBase, storeFolder, networkPoolSize: 0, ...(snapshotMb !== undefined && { snapshotMb }) });
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
  });
  return {
    engine: () => engine,
    reopen: async (snapshotMb?: number) => {
      await engine.close();
      engine = open(snapshotMb);
    },
    create: (snapshot?: string) =>
      engine.create(
        {
          id: `sandbox-${++count}`,
          command: ["/usr/bin/node", "-e", COUNTER, "--"],
          variables: {},
          labels: {},
          startTimeoutMs: 60_000,
          ...(snapshot !== undefined && { snapshot }),
        },
        signal,
      ),
    sh: async (sandbox: Sandbox, script: string) => {
      await using init = await connectInit(sandbox.initAddress ?? sandbox.address, engine.initKey, signal);
      return (await init.run({ argv: ["/bin/sh", "-c", script] })).stdout.toString().trim();
    },
  };
}

async function ask(sandbox: Sandbox, path = "/"): Promise<string> {
  const { host, port } = sandbox.address as { host: string; port: number };
  return (await fetch(`http://${host}:${port}${path}`)).text();
}

for (const runtime of ["runc", "runsc"] as const) {
  describeSnapshots(runtime, ({ engine, create, sh, reopen }) => {
    it("have the files of the sandbox at that moment, and other sandboxes start with them", async () => {
      const parent = await create();
      await sh(parent, "echo one > /kept; echo two > /tmp/kept; rm /opt/test/program.js");
      const snapshot = await parent.snapshot?.("files", signal);
      expect(snapshot).toMatchObject({ fidelity: "files", bytes: expect.any(Number) });
      await sh(parent, "echo later > /kept");
      const copy = await create(snapshot?.id);
      expect(await sh(copy, "cat /kept /tmp/kept; ls /opt/test")).toBe("one\ntwo");
      expect(await ask(copy)).toBe("1");
      const next = await copy.snapshot?.("files", signal);
      // A copy keeps its files when the snapshots are gone, and a restarted engine knows those that are not.
      await engine().removeSnapshot(snapshot?.id ?? "");
      await reopen();
      expect(await sh((await engine().list()).find(({ id }) => id === copy.id) as Sandbox, "cat /kept")).toBe("one");
      expect(await sh(await create(next?.id), "cat /kept /tmp/kept")).toBe("one\ntwo");
      await engine().removeSnapshot(next?.id ?? "");
      await engine().removeSnapshot(next?.id ?? "");
      await expect(create(next?.id)).rejects.toMatchObject({ code: "snapshot.not_found" });
    }, 120_000);

    it("of a frozen sandbox leave it frozen", async () => {
      const parent = await create();
      await sh(parent, "echo one > /kept");
      await parent.freeze?.();
      const snapshot = await parent.snapshot?.("files", signal);
      const copy = await create(snapshot?.id);
      expect(await sh(copy, "cat /kept")).toBe("one");
      let isAnswered = false;
      const answer = ask(parent).then(() => {
        isAnswered = true;
      });
      await ask(copy);
      expect(isAnswered).toBe(false);
      await parent.thaw?.();
      await answer;
      await engine().removeSnapshot(snapshot?.id ?? "");
    }, 120_000);

    it("are refused when they need more space than there is, and nothing of them is left", async () => {
      await reopen(8);
      const parent = await create();
      await sh(parent, "dd if=/dev/urandom of=/large bs=1000000 count=12");
      await expect(parent.snapshot?.("files", signal)).rejects.toMatchObject({
        code: "quota.exceeded",
        message: expect.stringMatching(/has 1[23] MB, and the others on this server 0 MB of 8 MB/),
      });
      await reopen();
    }, 120_000);
  });
}

describeSnapshots("runc", ({ create }) => {
  it("have no memory, and say so", async () => {
    const parent = await create();
    await expect(parent.snapshot?.("memory", signal)).rejects.toMatchObject({
      code: "sandbox.unsupported",
      message: expect.stringContaining("use runsc"),
    });
  }, 60_000);
});

describeSnapshots("runsc", ({ engine, create, sh }) => {
  it("continue the program with its memory, under another name and address, and copies of copies too", async () => {
    const parent = await create();
    await sh(parent, "echo one > /kept");
    expect([await ask(parent), await ask(parent)]).toEqual(["1", "2"]);
    const snapshot = await parent.snapshot?.("memory", signal);
    expect(snapshot).toMatchObject({ fidelity: "memory", cut: [] });
    const copies = [await create(snapshot?.id), await create(snapshot?.id)];
    expect(await Promise.all(copies.map((copy) => ask(copy)))).toEqual(["3", "3"]);
    expect(await ask(parent)).toBe("3");
    const names = await Promise.all([parent, ...copies].map((one) => sh(one, "cat /etc/hosts /proc/sys/kernel/hostname; cat /kept")));
    expect(new Set(names).size).toBe(3);
    expect(names.every((text) => text.endsWith("\none"))).toBe(true);

    const [first] = copies as [Sandbox, Sandbox];
    const second = await first.snapshot?.("memory", signal);
    await engine().removeSnapshot(snapshot?.id ?? "");
    await parent.destroy();
    const grandchild = await create(second?.id);
    expect(await ask(grandchild)).toBe("4");
    // Files of a copy that were written before and after it was made.
    await sh(grandchild, "echo two > /also");
    const files = await grandchild.snapshot?.("files", signal);
    expect(await sh(await create(files?.id), "cat /kept /also")).toBe("one\ntwo");
    for (const one of [second, files]) await engine().removeSnapshot(one?.id ?? "");
  }, 180_000);

  it("notice that the program of a copy ends", async () => {
    const parent = await create();
    const snapshot = await parent.snapshot?.("memory", signal);
    const copy = await create(snapshot?.id);
    await ask(copy, "/exit").catch(() => undefined);
    expect((await copy.exited).reason).toContain("exit code 7");
    expect(await ask(parent)).toBe("1");
    await copy.destroy();
    await engine().removeSnapshot(snapshot?.id ?? "");
  }, 120_000);
});
