import type { InstanceRecord } from "@aenv/contract";
import { vi } from "vitest";
import { post } from "../crash/load.ts";
import type { ServerProcess } from "../crash/server-process.ts";
import { type FaultyCluster, isWaiting, type TestPod } from "./faulty-cluster.ts";

/** A pod that a killed server was starting is removed when its start timeout is over and a minute more. */
const SETTLE_MS = 180_000;

/** Waits until the rows, the pods and the answers of instances agree. Returns all instances. */
export async function settled(
  cluster: FaultyCluster,
  onProblem: (problem: string) => void = () => undefined,
): Promise<readonly InstanceRecord[]> {
  let instances: readonly InstanceRecord[] = [];
  const check = async () => {
    instances = await instancesOf(cluster.servers[0] as ServerProcess);
    const problem = await findProblem(cluster, instances);
    if (problem === null) return;
    onProblem(problem);
    throw new Error(problem);
  };
  await vi.waitFor(check, { timeout: SETTLE_MS, interval: 100 });
  return instances;
}

/** Every instance runs and answers, or has ended with a reason; and there is a pod for each that runs, one may wait, and there is no other. */
async function findProblem(cluster: FaultyCluster, instances: readonly InstanceRecord[]): Promise<string | null> {
  const running = instances.filter(({ status }) => status === "Running");
  for (const one of instances) {
    const problem = one.status === "Running" ? await silenceOf(cluster, one) : endProblem(one);
    if (problem !== null) return problem;
  }
  const pods = await cluster.pods();
  const waiting = namesOf(pods.filter(isWaiting));
  if (waiting.length > 1) return `there are the waiting pods ${waiting.join(", ")}`;
  const used = namesOf(pods.filter((pod) => !isWaiting(pod)));
  const ids = running.map(({ id }) => id);
  return used.length === ids.length ? null : `there are the pods ${used.join(", ")} and the running instances ${ids.join(", ")}`;
}

function namesOf(pods: readonly TestPod[]): string[] {
  return pods.map(({ metadata }) => metadata.name);
}

/** Asks every server: each of them serves all instances. */
async function silenceOf({ servers }: FaultyCluster, { id }: InstanceRecord): Promise<string | null> {
  for (const { dataUrl } of servers) {
    const { status, text } = await post(`${dataUrl}/env-instance/${id}/functions/count`, {});
    if (status !== 200) return `${id} is reported as running, but a call got ${status}: ${text}`;
  }
  return null;
}

function endProblem({ id, status, reason }: InstanceRecord): string | null {
  if (status !== "Failed" && status !== "Terminated") return `${id} is ${status}`;
  return status === "Failed" && (reason ?? "") === "" ? `${id} has failed without a reason` : null;
}

export async function instancesOf(server: ServerProcess): Promise<readonly InstanceRecord[]> {
  const { items } = (await server.demand("GET", "/env-instance/list?limit=1000")) as { items: readonly InstanceRecord[] };
  return items;
}
