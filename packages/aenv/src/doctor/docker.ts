import { request } from "node:http";
import { homedir } from "node:os";
import { isObject, messageOf } from "@aenv/contract";
import type { ProbeResult } from "@aenv/sandbox";

const TIMEOUT_MS = 10_000;

/** Asks the Docker or Podman engine behind the socket for its version and its runtimes. */
export async function probeDocker(socket: string): Promise<ProbeResult> {
  try {
    const [version, info] = [await get(socket, "/version"), await get(socket, "/info")];
    const name = /podman/i.test(JSON.stringify(version.Components ?? "")) ? "Podman" : "Docker";
    const runtimes = isObject(info.Runtimes) ? Object.keys(info.Runtimes).filter((one) => one === "runc" || one === "runsc") : [];
    return { ok: true, detail: `${name} ${version.Version} at ${socket}${runtimes.length > 0 ? `, with ${runtimes.join(" and ")}` : ""}` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { ok: false, reason: `no socket at ${socket}` };
    if (code === "ECONNREFUSED") return { ok: false, reason: `no engine answers at ${socket}; start it` };
    if (code === "EACCES") return { ok: false, reason: `no permission for ${socket}; add this user to the group that owns it` };
    return { ok: false, reason: `the engine at ${socket} did not answer: ${messageOf(error)}` };
  }
}

/** The path in `DOCKER_HOST`, as the docker command reads it; null if that is not a socket file. */
export function dockerSocket(env: Readonly<Record<string, string | undefined>>): string | null {
  const host = env.DOCKER_HOST;
  if (host === undefined || host === "") return "/var/run/docker.sock";
  return host.startsWith("unix://") ? host.slice("unix://".length).replace(/^~(?=\/)/, homedir()) : null;
}

function get(socketPath: string, path: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const asking = request({ socketPath, path, signal }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("error", reject).on("end", () => {
        try {
          const value: unknown = JSON.parse(text);
          if (response.statusCode !== 200 || !isObject(value)) throw new Error(`status ${response.statusCode}`);
          resolve(value);
        } catch (error) {
          reject(error as Error);
        }
      });
    });
    asking.on("error", reject).end();
  });
}
