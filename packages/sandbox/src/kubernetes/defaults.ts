import type { CommandDefaults } from "../engine/engine.ts";
import type { InitConnection } from "../init/connection.ts";

/** The API server's address, which Kubernetes gives to every container and no sandbox needs. */
const OF_CLUSTER = /^KUBERNETES_/;

/** What the node gave to process 1: the working directory, and the variables of the image and of the pod's template. */
export async function readDefaults({ files }: Pick<InitConnection, "files">, abort: AbortSignal): Promise<CommandDefaults> {
  const [environment, folder] = await Promise.all([
    files.read({ path: "/proc/1/environ", abort }),
    files.stat({ path: "/proc/1/cwd", abort }),
  ]);
  return { cwd: folder.target ?? "/", env: variablesIn(environment.toString("utf8")) };
}

export function variablesIn(environment: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const text of environment.split("\0")) {
    const at = text.indexOf("=");
    if (at > 0 && !OF_CLUSTER.test(text)) found[text.slice(0, at)] = text.slice(at + 1);
  }
  // The home of a user without an entry in the image.
  if ((found.HOME ?? "/") === "/") found.HOME = "/tmp";
  return found;
}
