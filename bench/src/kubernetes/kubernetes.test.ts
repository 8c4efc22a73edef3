import { clusterProgram, describeNeeding } from "@aenv/testing";
import { expect, it } from "vitest";
import type { Measurement } from "../row.ts";
import { openBenchCluster } from "./cluster.ts";
import { measureSimulation } from "./simulation.ts";

const PODS = 200;

describeNeeding("kubernetes", "the engine kubernetes with simulated pods", () => {
  const kwok = clusterProgram("kwok");

  it.skipIf(kwok === null)(
    "creates, watches and deletes 200 pods with few writes each and without polling",
    { timeout: 300_000 },
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
