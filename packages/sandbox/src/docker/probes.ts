import { existsSync } from "node:fs";
import type { SandboxRuntime } from "../engine/engine.ts";
import { attempt, isRootOnLinux, needsRoot, PROBE_TIMEOUT_MS, type ProbeResult } from "../host/probe.ts";
import { DockerApi } from "./api.ts";
import { readDaemon, runtimeFor } from "./daemon.ts";
import { filterProblem } from "./packet-filter.ts";

/** Asks the Docker or Podman engine behind the socket whether it can run sandboxes with the runtime. */
export async function probeDocker(socket: string, runtime: SandboxRuntime): Promise<ProbeResult> {
  const api = new DockerApi(socket);
  // An engine that does not answer: the requests end with the connections.
  const limit = setTimeout(() => void api.close(), PROBE_TIMEOUT_MS);
  try {
    return await attempt(async () => {
      const [daemon, { Version: version }] = [await readDaemon(api), await api.call("GET", "/version")];
      // With runc, servers use the runtime that is the engine's default.
      const { runtime: found } = runtimeFor(runtime === "runc" ? undefined : runtime, daemon);
      return `${daemon.isPodman ? "Podman" : "Docker"} ${version} at ${socket}, with ${found}`;
    });
  } finally {
    clearTimeout(limit);
    await api.close();
  }
}

/** Whether a server here can restrict the outgoing connections of containers of the engine behind the socket. */
export async function probeDockerEgress(socket: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  if (!existsSync(socket)) return { ok: false, reason: `nothing listens at ${socket}` };
  const problem = filterProblem(socket);
  return problem === null ? { ok: true, detail: "packets of its containers can be filtered" } : { ok: false, reason: problem };
}
