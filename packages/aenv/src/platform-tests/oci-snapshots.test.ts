import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InstanceRecord, SnapshotRecord } from "@aenv/contract";
import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type ServerProcess, type Starting, startServerProcess } from "./crash/server-process.ts";
import { askCounting, countingProgram } from "./fixtures/counting-program.ts";
import { projects, publish } from "./platform.ts";
import { endProcesses, processesOf } from "./processes.ts";

const ended = (name: string, home: string) => (existsSync(join(home, name)) ? readdirSync(join(home, name)) : []);

/** Two servers on one store: `other` has its own sandboxes and layers, as on another machine, and the same archives. */
function openServers(runtime: "runc" | "runsc") {
  let home: string;
  let other: string;
  const started: Starting[] = [];
  let redis: RedisServer;
  const start = async (at: string) => {
    const flags = { store: redis.url, engine: "oci", runtime, poolMin: 0, poolMax: 0, sandboxesReady: 0, round: "200ms", silence: "60s" };
    const starting = startServerProcess(at, { flags });
    started.push(starting);
    return starting.ready;
  };
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "aenv-snapshots-here-"));
    other = mkdtempSync(join(tmpdir(), "aenv-snapshots-there-"));
    redis = await startRedis({});
  });
  afterAll(async () => {
    await Promise.allSettled(started.map(async (one) => (await one.ready).stop()));
    await Promise.allSettled(started.map((one) => one.kill()));
    for (const one of [home, other]) {
      endProcesses(processesOf(one));
      rmSync(one, { recursive: true, force: true });
    }
    await redis?.[Symbol.asyncDispose]();
  });
  return {
    get home() {
      return home;
    },
    start: () => start(home),
    startElsewhere: () => {
      mkdirSync(join(home, "blobs"), { recursive: true });
      symlinkSync(join(home, "blobs"), join(other, "blobs"));
      // Stored processes accept only servers with this key.
      copyFileSync(join(home, "init-key.pem"), join(other, "init-key.pem"));
      return start(other);
    },
  };
}

const node = async (server: ServerProcess, id: string, script: string) => {
  const body = { command: ["node", "-e", script], wait: true };
  return ((await server.demand("POST", `/env-instance/${id}/exec`, body)) as { stdout: string }).stdout;
};
const take = (server: ServerProcess, id: string, body: object) =>
  server.demand("POST", `/env-instance/${id}/snapshot`, body) as Promise<SnapshotRecord>;
const named = async (server: ServerProcess) =>
  ((await server.demand("GET", "/snapshots")) as { items: SnapshotRecord[] }).items.map(({ name }) => name);

for (const runtime of ["runc", "runsc"] as const) {
  describeNeeding(runtime, `stored snapshots of ${runtime} sandboxes`, () => {
    describeNeeding("redis", "on two servers", () => {
      vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });
      const servers = openServers(runtime);
      const fidelities = runtime === "runsc" ? (["files", "memory"] as const) : (["files"] as const);
      let here: ServerProcess;
      let elsewhere: ServerProcess;
      let parent: InstanceRecord;
      beforeAll(async () => {
        here = await servers.start();
        elsewhere = await servers.startElsewhere();
        parent = await here.create(await publish(here, projects.probe));
        await callTool(urlOf(here, parent.id), "count");
        await node(here, parent.id, "fs.writeFileSync('/kept', 'before')");
      });

      it(`have ${fidelities.join(" and ")}, and instances start from them on both`, async () => {
        for (const fidelity of fidelities) {
          const stored = await take(here, parent.id, { name: `its-${fidelity}`, fidelity });
          expect(stored).toMatchObject({ fidelity, status: "Ready", environment: "probe@1.0.0", instance: parent.id });
          await node(here, parent.id, "fs.writeFileSync('/later', '')");
          for (const server of [here, elsewhere]) {
            const copy = await server.create("probe", { snapshot: stored.name });
            expect(copy).toMatchObject({ started_from: { id: stored.id, fidelity } });
            expect(await callTool(urlOf(server, copy.id), "count")).toMatchObject({ text: "2" });
            expect(await node(server, copy.id, "console.log(fs.readFileSync('/kept', 'utf8'), fs.existsSync('/later'))")).toBe(
              "before false\n",
            );
            if (server === here) continue;
            // Deleting it does not end what was started from it.
            await here.demand("DELETE", `/snapshots/${stored.name}`);
            expect((await server.ask("POST", "/env-instance", { snapshot: stored.name })).error?.code).toBe("snapshot.not_found");
            expect(await callTool(urlOf(server, copy.id), "count")).toMatchObject({ text: "3" });
            const again = await take(server, copy.id, { name: "copy", fidelity });
            expect(await callTool(urlOf(here, (await here.create("", { snapshot: again.id })).id), "count")).toMatchObject({ text: "4" });
            await server.demand("DELETE", `/snapshots/${again.id}`);
          }
          await node(here, parent.id, "fs.rmSync('/later')");
        }
        expect(await named(elsewhere)).toEqual([]);
        for (const prefix of ended("blobs/snapshots/sha256", servers.home))
          expect(ended(`blobs/snapshots/sha256/${prefix}`, servers.home)).toEqual([]);
      });

      if (runtime === "runsc") return;

      it("of a program have the changed files of its folder, on both", async () => {
        using project = countingProgram();
        const program = await here.create(await publish(here, project.path));
        for (const count of [1, 2]) expect(await askCounting(here, program.id, "/count")).toMatchObject({ count });
        const stored = await take(here, program.id, { name: "program", fidelity: "files" });
        for (const server of [here, elsewhere]) {
          const { id } = await server.create("counting", { snapshot: "program", environment_variables: { GREETING: "hello" } });
          expect(await askCounting(server, id, "/count")).toMatchObject({ count: 1, inFile: 2, greeting: "hello" });
        }
        await here.demand("DELETE", `/snapshots/${stored.id}`);
      });

      it("have no memory, and the refusal says what to do", async () => {
        const refused = await here.ask("POST", `/env-instance/${parent.id}/snapshot`, { fidelity: "memory" });
        expect(refused).toMatchObject({ status: 501, message: expect.stringContaining("use runsc") });
        expect(await named(here)).toEqual([]);
      });

      it("leave nothing when the server is killed while one is stored", async () => {
        const lost = here.ask("POST", `/env-instance/${parent.id}/snapshot`, { name: "lost", fidelity: "files" }).catch(() => null);
        const tmp = "blobs/snapshots/tmp";
        await vi.waitFor(() => expect(ended(tmp, servers.home)).not.toEqual([]), { timeout: 60_000, interval: 5 });
        expect(await named(elsewhere)).toEqual(["lost"]);
        await here.kill();
        expect(await lost).toBeNull();
        here = await servers.start();
        expect(await named(here)).toEqual([]);
        expect(ended(tmp, servers.home)).toEqual([]);
        expect(ended("oci/snapshots", servers.home)).toEqual([]);
        expect(await callTool(urlOf(here, parent.id), "count")).toMatchObject({ text: "2" });
        const { id } = await take(here, parent.id, { name: "lost" });
        expect(await callTool(urlOf(elsewhere, (await elsewhere.create("probe", { snapshot: { id } })).id), "count")).toMatchObject({
          text: "3",
        });
      });
    });
  });
}
