import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { parseMountinfo } from "../../host/mountinfo.ts";
import { metricOf } from "../../network/home.ts";
import { prefixOf } from "../../network/subnet.ts";
import { findHierarchy } from "../cgroups/group.ts";
import { foldersOf } from "../cgroups/hierarchy.ts";
import { homeKey, mappedFolder } from "../container.ts";

/**
 * What is left of the sandboxes of a home: folders, mounts, control groups, and networks that do not wait in the pool. Not what the
 * sandboxes of runsc share, which is there until the engine closes.
 */
export async function leftoversOf(home: string): Promise<string[]> {
  const oci = join(realpathSync(home), "oci");
  const folders = ["sandboxes", "containers"].flatMap((name) => namesIn(join(oci, name)).map((id) => `folder ${name}/${id}`));
  const mounts = parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8")).filter(
    ({ target }) => target.startsWith(oci) || (target.startsWith(mappedFolder(homeKey(oci))) && !target.endsWith("/null-netns")),
  );
  const groups = foldersOf(await findHierarchy(), `/aenv-${homeKey(oci)}`).flatMap((folder) =>
    namesIn(folder)
      .filter((name) => name.startsWith(homeKey(oci)))
      .map((name) => `control group ${folder}/${name}`),
  );
  return [...folders, ...mounts.map(({ target }) => `mount ${target}`), ...groups, ...takenNetworks(join(oci, "networks"))];
}

/** The same when no engine of the home is open any more: then nothing waits in a pool either, and no rules are needed. */
export async function allLeftoversOf(home: string): Promise<string[]> {
  const oci = join(realpathSync(home), "oci");
  const key = homeKey(oci);
  const prefix = prefixOf(home);
  const lines = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: "utf8" }).split("\n");
  const groups = foldersOf(await findHierarchy(), `/aenv-${key}`).filter((folder) => existsSync(folder));
  const runtimes = ["runc", "runsc"].flatMap((name) =>
    ["state", "sandboxes"].flatMap((folder) => namesIn(join(oci, "runtime", name, folder)).map((id) => `${name} ${folder} ${id}`)),
  );
  return [
    ...(await leftoversOf(home)),
    ...namesIn(mappedFolder(key)).map((name) => `root ${name}`),
    ...(existsSync(mappedFolder(key)) ? [mappedFolder(key)] : []),
    ...groups.map((folder) => `control group ${folder}`),
    ...namesIn("/run/netns")
      .filter((name) => name.startsWith(prefix))
      .map((name) => `network namespace ${name}`),
    ...lines("ip", "-o", "link").filter((line) => line.includes(prefix)),
    ...lines("nft", "list", "tables").filter((line) => line.includes(prefix)),
    ...lines("ip", "-4", "route", "show", "table", "all", "type", "blackhole").filter((line) =>
      new RegExp(`metric ${metricOf(home)}\\b`).test(line),
    ),
    ...lines("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").filter((line) => line.includes(oci)),
    ...runtimes,
    ...namesIn(join(oci, "networks"))
      .filter((name) => name.startsWith(prefix))
      .map((name) => `network ${name}`),
    ...namesIn(join(oci, "snapshots")).map((id) => `snapshot ${id}`),
    ...processesIn(key, oci).map((pid) => `process ${pid}`),
  ];
}

/**
 * Processes in a control group of the home, and programs of a runtime that were to start a sandbox. One that has ended, and that its parent has
 * not asked about, is in a deleted group.
 */
function processesIn(key: string, oci: string): string[] {
  const isInside = (pid: string) => new RegExp(`/aenv-${key}\\b(?!.*\\(deleted\\)$)`, "m").test(textOf(`/proc/${pid}/cgroup`));
  const isStarting = (pid: string) => textOf(`/proc/${pid}/cmdline`).includes(`${oci}/runtime/`);
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && (isInside(pid) || isStarting(pid)));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function takenNetworks(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => name.endsWith(".json"))
    .filter((name) => (JSON.parse(readFileSync(join(folder, name), "utf8")) as { state?: unknown }).state === "taken")
    .map((name) => `network ${name}`);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
