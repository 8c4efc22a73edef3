import type { PodLog } from "./log.ts";
import { SECOND_INIT_PORT } from "./pod/second.ts";
import { endByInit } from "./removal.ts";
import { KubernetesSandbox, type SandboxParts } from "./sandbox.ts";

/** The second container of a pod, as a sandbox; null if it has none. It cannot be started again, so one that is destroyed stays ended. */
export function secondSandbox(host: SandboxParts, logOf: (container: string) => PodLog): KubernetesSandbox | null {
  const { second, ...state } = host.state;
  if (second === undefined) return null;
  return new KubernetesSandbox({
    ...host,
    id: `${host.id}.second`,
    initPort: SECOND_INIT_PORT,
    state: { ...state, port: null, hasInit: true },
    log: logOf(second),
    destroy: async (one) => {
      if (!one.hasExited) await endByInit(one);
      one.markExited("the second container was closed");
    },
  });
}
