import { existsSync, readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";

/** What runs in a home, as the operating system and the sandboxes report it. */
export interface Truth {
  /** Ids of sandboxes, by their folders. */
  readonly sandboxes: readonly string[];
  /** Folders that are being made or removed. */
  readonly unfinished: readonly string[];
  /** Ids of the sandboxes whose processes run. */
  readonly processes: readonly string[];
  /** The instances in each sandbox; empty for a warm one. */
  readonly slots: ReadonlyMap<string, readonly string[]>;
}

export async function lookAt(home: string): Promise<Truth> {
  const folder = join(home, "sandboxes");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const sandboxes = names.filter((name) => !name.startsWith("."));
  const slots = await Promise.all(sandboxes.map(async (sandbox) => [sandbox, await slotsIn(join(folder, sandbox, "s"))] as const));
  const processes = processesIn(folder).map(({ sandbox }) => sandbox);
  return { sandboxes, unfinished: names.filter((name) => name.startsWith(".")), processes, slots: new Map(slots) };
}

/** Kills the sandbox of an instance like the OOM killer does. */
export async function killSandboxOf(home: string, instanceId: string): Promise<void> {
  const { slots } = await lookAt(home);
  const [sandbox] = [...slots].find(([, ids]) => ids.includes(instanceId)) ?? [];
  const found = processesIn(join(home, "sandboxes")).find((one) => one.sandbox === sandbox);
  if (found === undefined) throw new Error(`${instanceId} is in no sandbox`);
  process.kill(found.pid, "SIGKILL");
}

/** All processes of sandboxes in this home, each with its sandbox. */
function processesIn(folder: string): { pid: number; sandbox: string }[] {
  const found: { pid: number; sandbox: string }[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const marker = environmentOf(name).find((entry) => entry.startsWith(`AENV_SANDBOX=${folder}/`));
    // A secret follows the sandbox's name.
    if (marker !== undefined)
      found.push({ pid: Number(name), sandbox: marker.slice(`AENV_SANDBOX=${folder}/`.length).split(":")[0] as string });
  }
  return found;
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function slotsIn(socketPath: string): Promise<string[]> {
  return new Promise((resolve) => {
    const request = get({ socketPath, path: "/env-instance/list", headers: { host: "localhost" }, timeout: 5_000 }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      const items: { id: string }[] = response.statusCode === 200 ? JSON.parse(text).data.items : [];
      resolve(items.map(({ id }) => id));
    });
    // The sandbox has ended meanwhile.
    request.on("error", () => resolve([])).on("timeout", () => request.destroy());
  });
}
