import { existsSync, readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";

/** What truly runs in a home, asked of nobody but the system and the boxes themselves. */
export interface Truth {
  /** Ids of boxes, by their folders. */
  readonly boxes: readonly string[];
  /** Folders that are being made or removed. */
  readonly unfinished: readonly string[];
  /** Ids of the boxes whose processes run. */
  readonly processes: readonly string[];
  /** Who sits in each box; an empty list for one that waits for someone. */
  readonly seats: ReadonlyMap<string, readonly string[]>;
}

export async function lookAt(home: string): Promise<Truth> {
  const folder = join(home, "boxes");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const boxes = names.filter((name) => !name.startsWith("."));
  const seats = await Promise.all(boxes.map(async (box) => [box, await seatsIn(join(folder, box, "s"))] as const));
  const processes = processesIn(folder).map(({ box }) => box);
  return { boxes, unfinished: names.filter((name) => name.startsWith(".")), processes, seats: new Map(seats) };
}

/** Ends the box of an instance as the system does when memory runs short. */
export async function killBoxOf(home: string, instanceId: string): Promise<void> {
  const { seats } = await lookAt(home);
  const [box] = [...seats].find(([, ids]) => ids.includes(instanceId)) ?? [];
  const found = processesIn(join(home, "boxes")).find((one) => one.box === box);
  if (found === undefined) throw new Error(`${instanceId} sits in no box`);
  process.kill(found.pid, "SIGKILL");
}

/** All processes of boxes in this home, each with its box. */
function processesIn(folder: string): { pid: number; box: string }[] {
  const found: { pid: number; box: string }[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const marker = environmentOf(name).find((entry) => entry.startsWith(`AENV_BOX=${folder}/`));
    // Behind the box's name stands a secret.
    if (marker !== undefined) found.push({ pid: Number(name), box: marker.slice(`AENV_BOX=${folder}/`.length).split(":")[0] as string });
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

function seatsIn(socketPath: string): Promise<string[]> {
  return new Promise((resolve) => {
    const request = get({ socketPath, path: "/env-instance/list", headers: { host: "localhost" }, timeout: 5_000 }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      const items: { id: string }[] = response.statusCode === 200 ? JSON.parse(text).data.items : [];
      resolve(items.map(({ id }) => id));
    });
    // Gone meanwhile.
    request.on("error", () => resolve([])).on("timeout", () => request.destroy());
  });
}
