import { setTimeout as pause } from "node:timers/promises";
import { killContainers } from "@aenv/sandbox/test-containers";
import { describeNeeding, Random } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import type { ServerProcess } from "./crash/server-process.ts";
import { projects, publish } from "./platform.ts";
import { FaultyCluster, isWaiting, type TestPod } from "./testing/faulty-cluster.ts";
import { settled } from "./testing/truth.ts";

const FAULTS = ["server killed", "pod deleted", "container killed", "API cut", "Redis cut", "Redis restarted"] as const;
const POINTS = ["create", "call", "release"] as const;
/** How long each about takes: a fault comes at any time of it. */
const DURATIONS_MS = { create: 2_500, call: 500, release: 120 } as const;

/** `AENV_KUBE_SEEDS=100` for a long run; `AENV_KUBE_FIRST` is the first seed. */
const SEEDS = Number(process.env.AENV_KUBE_SEEDS ?? FAULTS.length);
const FIRST = Number(process.env.AENV_KUBE_FIRST ?? 1);
/** Instances that live through several rounds. */
const KEPT = 2;

describeNeeding("kubernetes", "two servers with pods", () => {
  describeNeeding("redis", "on one Redis", () => {
    let cluster: FaultyCluster;
    let ref: string;

    beforeAll(async () => {
      cluster = await FaultyCluster.open(2);
      ref = await publish(cluster.servers[0] as ServerProcess, projects.probe);
    }, 240_000);

    afterAll(async () => {
      await cluster?.[Symbol.asyncDispose]();
    }, 120_000);

    /** One operation, and one fault while it is in progress. Then everything must agree again, without a hand. */
    async function live(seed: number, failures: Map<string, string>): Promise<string> {
      const random = new Random(seed);
      const server = random.pick(cluster.servers) as ServerProcess;
      // Six seeds in a row have every fault, and eighteen have every fault at every point.
      const fault = FAULTS[seed % FAULTS.length] as (typeof FAULTS)[number];
      const point = POINTS[(seed + Math.floor(seed / FAULTS.length)) % POINTS.length] as (typeof POINTS)[number];
      const { id } = await server.create(ref, { ttl: "1h" });
      const durationMs = DURATIONS_MS[point];
      const operation = operate(point, server, id, durationMs).catch(() => "broken off");
      await pause(random.next() * durationMs);
      const heal = await strike(fault, random);
      await pause(random.next() * 1_500);
      await heal();
      const outcome = await operation;
      let last = "";
      const all = await settled(cluster, (problem) => {
        last = `; the last to settle: ${problem}`;
      });
      const standing = all.find((one) => one.id === id);
      const isPodFault = fault === "pod deleted" || fault === "container killed";
      if (point !== "release" && !isPodFault) expect(standing, `${fault} during ${point}`).toMatchObject({ status: "Running" });
      for (const one of all) if (one.status === "Failed") failures.set(one.id, String(one.reason));
      const running = all.filter(({ status }) => status === "Running");
      for (const one of running.slice(KEPT)) await cluster.servers[0]?.demand("DELETE", `/env-instance/${one.id}`);
      return `${fault} during ${point}: ${outcome}${last}`;
    }

    /** What a client does, and what came of it. */
    async function operate(point: (typeof POINTS)[number], server: ServerProcess, id: string, durationMs: number): Promise<string> {
      switch (point) {
        case "create": {
          const { success, message } = await server.ask("POST", "/env-instance", { envName: ref, ttl: "1h" });
          return success ? "done" : message;
        }
        case "call": {
          const { status, message } = await callTool(urlOf(server, id), "wait", { ms: durationMs });
          return status === 200 ? "done" : (message ?? String(status));
        }
        case "release": {
          const { success, message } = await server.ask("DELETE", `/env-instance/${id}`);
          return success ? "done" : message;
        }
      }
    }

    /** Returns what ends the fault. */
    async function strike(fault: (typeof FAULTS)[number], random: Random): Promise<() => unknown> {
      const healed = () => undefined;
      switch (fault) {
        case "server killed":
          await cluster.killServer(random.pick(cluster.servers) as ServerProcess);
          return () => cluster.startServer();
        case "pod deleted": {
          const pod = random.pick(await cluster.pods());
          if (pod !== undefined) await cluster.deletePod(pod);
          return healed;
        }
        case "container killed": {
          const pod = random.pick(await cluster.pods());
          if (pod !== undefined && !killContainers(pod.metadata.uid ?? "")) await cluster.deletePod(pod);
          return healed;
        }
        case "API cut":
          cluster.api.cut();
          return () => cluster.api.restore();
        case "Redis cut":
          cluster.store.cut();
          return () => cluster.store.restore();
        case "Redis restarted":
          await cluster.redis.stop("SIGKILL");
          return () => cluster.redis.start();
      }
    }

    it(
      `are in a clear state after each of ${SEEDS} faults, with a pod for each instance and no other`,
      async () => {
        const failures = new Map<string, string>();
        const begun = performance.now();
        for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
          const from = performance.now();
          const happened = await live(seed, failures).catch((cause: unknown) => {
            throw new Error(`seed ${seed}: ${(cause as Error).message}\n${cluster.log()}`, { cause });
          });
          if (SEEDS > 10) console.log(`seed ${seed}, ${Math.round(performance.now() - from)} ms, ${happened}`);
        }
        console.log(
          `${SEEDS} rounds in ${Math.round(performance.now() - begun)} ms; failed instances: ${JSON.stringify([...failures], null, 1)}`,
        );
      },
      60_000 + SEEDS * 180_000,
    );

    it("are so with waiting pods, of which one is deleted while both servers need it", { timeout: 240_000 }, async () => {
      for (const server of [...cluster.servers]) await cluster.killServer(server);
      const servers = await Promise.all([1, 2].map(() => cluster.startServer({ sandboxesReady: 1 })));
      const { id } = await (servers[0] as ServerProcess).create(ref, { ttl: "1h" });
      const isReady = ({ status, metadata }: TestPod) => isWaiting({ metadata }) && status?.phase === "Running";
      await expect.poll(async () => (await cluster.pods()).filter(isReady).length, { timeout: 60_000 }).toBe(1);
      const [waiting] = (await cluster.pods()).filter(isReady) as [TestPod];
      const creations = servers.map((server) => server.ask("POST", "/env-instance", { envName: ref, ttl: "1h" }));
      await cluster.deletePod(waiting);
      const outcomes = await Promise.all(creations);
      const all = await settled(cluster);
      const running = all.filter(({ status }) => status === "Running").map((one) => one.id);
      expect(running).toEqual(expect.arrayContaining([id, ...outcomes.filter(({ success }) => success).map(({ data }) => data.id)]));
    });

    it("leave no pod when all instances are released, but one that waits", { timeout: 120_000 }, async () => {
      const [server] = cluster.servers as [ServerProcess];
      for (const { id, status } of await settled(cluster)) if (status === "Running") await server.demand("DELETE", `/env-instance/${id}`);
      const left = async () => (await cluster.pods()).filter((pod) => !isWaiting(pod)).map(({ metadata }) => metadata.name);
      await expect.poll(left, { timeout: 60_000 }).toEqual([]);
      await settled(cluster);
    });
  });
});
