import { clusterProgram, missing } from "@aenv/testing";
import { loadBaseImage } from "aenvironment/base-image-tests";
import type { Suite } from "../suite.ts";
import { openBenchCluster } from "./cluster.ts";
import { measureFirstResult } from "./first-result.ts";
import { fullScale } from "./scale.ts";
import { measureSimulation } from "./simulation.ts";

/** Instances in pods of the cluster of the tests. */
export const kubernetes: Suite = {
  name: "kubernetes",
  needs: async () => missing("kubernetes"),
  async run(report) {
    await using cluster = await openBenchCluster();
    const kubectl = clusterProgram("kubectl");
    if (kubectl === null) report.skip("create to first tool result", "no kubectl on the PATH");
    else await measureFirstResult(report, cluster, { image: await loadBaseImage(), kubectl, scale: fullScale(process.env) });
  },
};

/** Many pods that are simulated beside a real API server and scheduler. */
export const kubernetesScale: Suite = {
  name: "kubernetes-scale",
  needs: async () => missing("kubernetes"),
  async run(report) {
    await using cluster = await openBenchCluster();
    const kwok = clusterProgram("kwok");
    if (kwok === null) report.skip("simulated pods", "no kwok on the PATH (https://kwok.sigs.k8s.io)");
    else await measureSimulation(report, cluster, kwok, fullScale(process.env).simulated);
  },
};
