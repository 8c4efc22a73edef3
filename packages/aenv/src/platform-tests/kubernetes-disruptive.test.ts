import { containersOf } from "@aenv/sandbox/test-containers";
import { describeNeeding, findNodeProcess } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import type { ServerProcess } from "./crash/server-process.ts";
import { projects, publish } from "./platform.ts";
import { FaultyCluster, type TestPod } from "./testing/faulty-cluster.ts";
import { instancesOf, settled } from "./testing/truth.ts";

// These tests stop components of the cluster that all its users share. They run only where AENV_KUBE_NODE_PID names a node to disturb.
describeNeeding("kubernetes-node", "a platform whose cluster fails", () => {
  describeNeeding("redis", "under two servers", () => {
    let cluster: FaultyCluster;
    let servers: readonly [ServerProcess, ServerProcess];
    let ref: string;

    beforeAll(async () => {
      cluster = await FaultyCluster.open(2, { startTimeout: "12s" });
      servers = cluster.servers as unknown as typeof servers;
      ref = await publish(servers[0], projects.probe);
    }, 240_000);

    afterAll(async () => {
      await cluster?.[Symbol.asyncDispose]();
    }, 120_000);

    const answer = async (id: string) => (await callTool(urlOf(servers[1], id), "count")).status;

    it("keeps instances while a kubelet is stopped, says that it does not answer, and leaves nothing on the node", {
      timeout: 240_000,
    }, async () => {
      const [kept, released] = await Promise.all([servers[0].create(ref), servers[1].create(ref)]);
      const uids = (await cluster.pods()).map(({ metadata }) => metadata.uid ?? "");
      const kubelet = signalled("kubelet", "SIGSTOP");
      try {
        expect(await answer(kept.id)).toBe(200);
        const refused = await servers[0].ask("POST", "/env-instance", { envName: ref });
        expect(refused.message).toMatch(/node \S+ has reported nothing about it: check that its kubelet runs/);
        await servers[1].demand("DELETE", `/env-instance/${released.id}`);
        expect(await cluster.pods()).toHaveLength(1);
        expect(await answer(kept.id)).toBe(200);
      } finally {
        process.kill(kubelet, "SIGCONT");
      }
      const next = await vi.waitFor(() => servers[0].create(ref), { timeout: 60_000, interval: 500 });
      const all = await settled(cluster);
      expect(all.filter(({ status }) => status === "Running").map(({ id }) => id)).toEqual(expect.arrayContaining([kept.id, next.id]));
      const failed = all.filter(({ status }) => status === "Failed");
      expect(failed.map(({ reason }) => reason)).toEqual([expect.stringContaining("check that its kubelet runs")]);
      for (const { id } of [kept, next]) await servers[0].demand("DELETE", `/env-instance/${id}`);
      await expect.poll(() => uids.flatMap(containersOf), { timeout: 60_000 }).toEqual([]);
    });

    it("keeps instances while the API server is restarted, and follows pods again", { timeout: 240_000 }, async () => {
      const [kept, released] = await Promise.all([servers[0].create(ref), servers[1].create(ref)]);
      const before = signalled("kube-apiserver", "SIGKILL");
      const creating = servers[0].ask("POST", "/env-instance", { envName: ref });
      const releasing = servers[1].ask("DELETE", `/env-instance/${released.id}`);
      expect(await answer(kept.id)).toBe(200);
      const [made, gone] = await Promise.all([creating, releasing]);
      if (!made.success) expect(made.message).toContain("the Kubernetes API");
      expect(gone).toMatchObject({ success: true });
      await expect.poll(() => findNodeProcess("kube-apiserver"), { timeout: 60_000 }).not.toBeOneOf([before, null]);
      await settled(cluster);
      expect(await answer(kept.id)).toBe(200);
      await servers[1].create(ref);
      const [pod] = (await cluster.pods()) as [TestPod];
      await cluster.deletePod(pod);
      const reasons = async () => (await instancesOf(servers[1])).map(({ reason }) => String(reason));
      await expect.poll(reasons, { timeout: 60_000 }).toContain("the pod was deleted by another client of the cluster");
      const all = await settled(cluster);
      for (const { id, status } of all) if (status === "Running") await servers[0].demand("DELETE", `/env-instance/${id}`);
      await expect.poll(async () => (await cluster.pods()).length, { timeout: 60_000 }).toBe(0);
    });
  });
});

function signalled(program: string, signal: NodeJS.Signals): number {
  const pid = findNodeProcess(program);
  if (pid === null) throw new Error(`the node has no ${program}`);
  process.kill(pid, signal);
  return pid;
}
