import { takeTurns } from "../rounds.ts";
import { errorOfMean, mean } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { BenchCluster } from "./cluster.ts";
import { NodeReports } from "./node-reports.ts";

/** Milliseconds of one start. The pod is deleted when it resolves. */
type Start = () => Promise<number>;

const AIM = 1.1;
/** A run that is less exact does not show whether the aim is reached. */
const MAX_ERROR = 0.05;
/** The node has mostly ended the pod before; that would slow down the next start. */
const SETTLE_MS = 400;
/** Its multiples modulo 1 are spread evenly, however many there are. */
const SPREAD = (Math.sqrt(5) - 1) / 2;

/**
 * New pods of the platform beside `kubectl run`, in pairs. A node reports once in a second what runs, so it depends on the moment of the start
 * whether it takes up to a second longer. Both starts of a pair begin at the same share of that second, and the pairs are spread over it
 * evenly. Returns the mean of ours.
 */
export async function measureNewPods(
  report: Report,
  cluster: BenchCluster,
  pairs: number,
  starts: Readonly<Record<"ours" | "kubectl", Start>>,
): Promise<number> {
  await using reports = new NodeReports(cluster);
  const offset = Math.random();
  const shares = Array.from({ length: pairs + 1 }, (_, n) => (offset + n * SPREAD) % 1);
  const timed = (start: Start) => {
    let n = 0;
    return async () => {
      await reports.untilPhase(shares[n++] as number, SETTLE_MS);
      const from = performance.now();
      const ms = await start();
      return { ms, afterReportMs: from + ms - reports.lastAt };
    };
  };
  const contenders = { kubectl: timed(starts.kubectl), ours: timed(starts.ours) };
  await takeTurns(1, contenders);
  const { ours, kubectl } = await takeTurns(pairs, contenders);

  const [oursMs, kubectlMs] = [mean(ours.map(({ ms }) => ms)), mean(kubectl.map(({ ms }) => ms))];
  const beside = { what: "kubectl run of the same image until ready", value: kubectlMs };
  const name = `create to first tool result, a new pod, mean of ${pairs} pairs`;
  report.add({ name, value: oursMs, unit: "ms", beside, aim: { of: "ratio", is: "at most", limit: AIM } });
  const differences = ours.map(({ ms }, n) => ({ at: shares[n + 1] as number, ms: ms - (kubectl[n]?.ms as number) }));
  differences.sort((one, other) => one.at - other.at);
  report.add({
    name: `${name}: standard error of the difference`,
    value: errorOfMean(differences.map(({ ms }) => ms)),
    unit: "ms",
    beside,
    aim: { of: "ratio", is: "at most", limit: MAX_ERROR },
  });
  report.add({ name: `${name}: since the node reported the pod`, value: mean(ours.map(({ afterReportMs }) => afterReportMs)), unit: "ms" });
  return oursMs;
}
