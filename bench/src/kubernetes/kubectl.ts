import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { BenchCluster } from "./cluster.ts";

const run = promisify(execFile);
const READY_SECONDS = 120;

/** Milliseconds from `kubectl run` until the pod is ready: its program is started, and has no probe. The pod is deleted afterwards. */
export async function kubectlRun(
  kubectl: string,
  { kubeconfig, namespace, api }: BenchCluster,
  image: string,
  name: string,
): Promise<number> {
  const args = ["--kubeconfig", kubeconfig, "--namespace", namespace];
  const from = performance.now();
  await run(kubectl, [
    ...args,
    ...["run", name, `--image=${image}`, "--image-pull-policy=IfNotPresent", "--restart=Never"],
    `--overrides=${podOverrides(name, image)}`,
  ]);
  await run(kubectl, [...args, "wait", "--for=condition=Ready", `pod/${name}`, `--timeout=${READY_SECONDS}s`]);
  const ms = performance.now() - from;
  await api.delete(`/api/v1/namespaces/${namespace}/pods/${name}`, { graceSeconds: 0 });
  return ms;
}

/** As the restricted Pod Security Standard demands. */
function podOverrides(name: string, image: string): string {
  const container = {
    name,
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["node", "-e", "setInterval(() => {}, 60_000)"],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } };
  return JSON.stringify({ apiVersion: "v1", spec: { automountServiceAccountToken: false, securityContext, containers: [container] } });
}
