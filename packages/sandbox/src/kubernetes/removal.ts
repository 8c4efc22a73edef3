import type { KubernetesApi } from "./api/client.ts";
import { hasTerminated } from "./pod/progress.ts";
import { stateOf } from "./pod/state.ts";
import type { Pod } from "./pod/types.ts";
import type { PodTable } from "./pods.ts";
import type { KubernetesSandbox } from "./sandbox.ts";

export interface Removal {
  readonly api: KubernetesApi;
  readonly pods: PodTable;
  readonly pod: Pod;
  /** Null for a pod to which this process has no connection. */
  readonly sandbox: KubernetesSandbox | null;
  /** Whether a program was given to the init, or the image has its own. */
  readonly hasRun: boolean;
}

const SHUTDOWN_MS = 3_000;
const GONE_MS = 60_000;

/**
 * The init ends everything in the pod first. Then nothing runs in it, and the API server may forget it at once, while the node still
 * cleans up. The same if no program was given to the init yet. Otherwise the node is given time, and the pod is gone when the node has
 * confirmed it.
 */
export async function removePod({ api, pods, pod, sandbox, hasRun }: Removal): Promise<void> {
  const { name, uid = "" } = pod.metadata;
  const [hasEnded, hasSecondEnded] = await Promise.all([
    !hasRun || hasTerminated(pods.find(name) ?? pod) || (sandbox !== null && endByInit(sandbox)),
    sandbox?.second === undefined || sandbox.second.hasExited || endByInit(sandbox.second),
  ]);
  const withInit = stateOf(pod)?.second === undefined ? 1 : 2;
  const graceSeconds = hasEnded && hasSecondEnded && pod.spec.containers.length === withInit ? 0 : 1;
  const isThere = await api.delete(pods.path(name), { uid, graceSeconds });
  if (!isThere || graceSeconds === 0) return pods.remove(pod);
  const deadline = AbortSignal.timeout(GONE_MS);
  try {
    await pods.until(name, (now) => (now === null || now.metadata.uid !== uid ? true : undefined), deadline);
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new Error(`its node has not confirmed the end of pod ${name} within ${GONE_MS / 1_000} s`);
  }
}

/** Whether the init has confirmed that nothing runs any more: it ends last. */
export async function endByInit(sandbox: KubernetesSandbox): Promise<boolean> {
  if (!sandbox.state.hasInit) return false;
  const late = new Promise<false>((resolve) => {
    setTimeout(() => resolve(false), SHUTDOWN_MS).unref();
  });
  const ending = async () => {
    const init = await sandbox.init();
    await init.shutdown({ graceMs: 0 });
    await init.closed;
    return true;
  };
  return Promise.race([ending().catch(() => false), late]);
}
