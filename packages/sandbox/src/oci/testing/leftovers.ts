import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { parseMountinfo } from "../../mountinfo.ts";
import { findHierarchy } from "../cgroups/group.ts";
import { foldersOf } from "../cgroups/hierarchy.ts";
import { homeKey } from "../containers.ts";

/** What is left of the sandboxes of a home: folders, mounts, control groups, and networks that do not wait in the pool. */
export async function leftoversOf(home: string): Promise<string[]> {
  const oci = join(realpathSync(home), "oci");
  const folders = ["sandboxes", "containers"].flatMap((name) => namesIn(join(oci, name)).map((id) => `folder ${name}/${id}`));
  const mounts = parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8")).filter(({ target }) => target.startsWith(oci));
  const groups = foldersOf(await findHierarchy(), `/aenv-${homeKey(oci)}`).flatMap((folder) =>
    namesIn(folder)
      .filter((name) => name.startsWith(homeKey(oci)))
      .map((name) => `control group ${folder}/${name}`),
  );
  return [...folders, ...mounts.map(({ target }) => `mount ${target}`), ...groups, ...takenNetworks(join(oci, "networks"))];
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
