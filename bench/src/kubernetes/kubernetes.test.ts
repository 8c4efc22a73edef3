import { clusterProgram, describeNeeding } from "@aenv/testing";
import { loadBaseImage } from "aenvironment/base-image-tests";
import { expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { openBenchCluster } from "./cluster.ts";
import { kubectlRun } from "./kubectl.ts";
import { measureNewPods } from "./new-pods.ts";
import { measureSimulation } from "./simulation.ts";

/** `.ci/nightly` simulates ten thousand. */
const PODS = Number(process.env.AENV_KUBE_PODS ?? 200);

describeNeeding("kubernetes", "the engine kubernetes with simulated pods", () => {
  const kwok = clusterProgram("kwok");

  it.skipIf(kwok === null)(
    `creates, watches and deletes ${PODS} pods with few writes each and without polling`,
    { timeout: 300_000 + PODS * 200 },
    async () => {
      const added: Measurement[] = [];
      {
        await using cluster = await openBenchCluster();
        const report = { add: (one: Measurement) => void added.push(one), skip: () => {}, progress: () => {} };
        await measureSimulation(report, cluster, kwok ?? "", PODS);
        const left = await cluster.api.list(`/api/v1/namespaces/${cluster.namespace}/pods`, {});
        expect(left.items).toEqual([]);
      }
      const value = (name: string) => added.find((one) => one.name.includes(name))?.value;
      expect(value("writes per pod")).toBeLessThanOrEqual(4);
      expect(value("reads per pod")).toBeLessThanOrEqual(0.1);
    },
  );
});

describeNeeding("kubernetes", "new pods in pairs", () => {
  it("gives means, how exact their difference is, and the part after the node's report", { timeout: 180_000 }, async () => {
    const added: Measurement[] = [];
    const report = { add: (one: Measurement) => void added.push(one), skip: () => {}, progress: () => {} };
    await using cluster = await openBenchCluster();
    const image = await loadBaseImage();
    let runs = 0;
    const start = () => kubectlRun(clusterProgram("kubectl") ?? "", cluster, image, `pair-${++runs}`);
    const meanMs = await measureNewPods(report, cluster, 3, { ours: start, kubectl: start });
    expect(runs).toBe(8);
    const [both, error, after] = added;
    expect(both).toMatchObject({ name: "create to first tool result, a new pod, mean of 3 pairs", value: meanMs });
    expect(error?.beside).toEqual(both?.beside);
    expect(error?.value).toBeGreaterThan(0);
    // kubectl waits for little else.
    expect(after?.value).toBeLessThan(meanMs);
  });
});
