import { stat } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError, splitRef } from "@aenv/contract";
import type { LocalChild } from "../definition/local-child.ts";
import { type LoadedEnvironment, loadEnvironment, setDataRoot } from "./load.ts";

/**
 * Loads the environments that `deployConfig.uses` names, at all levels. `places` says where some of those of the first level are: the path of a
 * project, or the URL of an environment that is served. The others are looked for beside the project: `../judge`.
 */
export async function loadUses(
  { name, config, root }: Pick<LoadedEnvironment, "name" | "config" | "root">,
  places: Readonly<Record<string, string>> = {},
): Promise<readonly LocalChild[]> {
  const uses = await loadBelow({ config, root }, places, [name]);
  for (const place of Object.keys(places))
    if (!uses.some((one) => one.name === place))
      throw invalid(`there is no child '${place}'; deployConfig.uses has ${uses.map((one) => one.name).join(", ") || "none"}`);
  setDataRoot(root);
  return uses;
}

async function loadBelow(
  { config, root }: Pick<LoadedEnvironment, "config" | "root">,
  places: Readonly<Record<string, string>>,
  above: readonly string[],
): Promise<LocalChild[]> {
  const loaded: LocalChild[] = [];
  for (const { env, ...use } of config?.deployConfig?.uses ?? []) {
    const place = places[use.name];
    if (place !== undefined && /^https?:\/\//.test(place)) {
      loaded.push({ ...use, environment: { url: place } });
      continue;
    }
    const path = place ?? join(root, "..", splitRef(env).name);
    if ((await stat(path).catch(() => null)) === null)
      throw invalid(`the child '${use.name}' is '${env}', and there is no project at ${path}; name it with --use ${use.name}=PATH_OR_URL`);
    const child = await loadEnvironment(path);
    if (above.includes(child.name))
      throw invalid(
        `'${use.name}' leads back to '${child.name}': ${[...above, child.name].join(" -> ")}; an environment cannot contain itself`,
      );
    const { name, version, definition } = child;
    loaded.push({ ...use, environment: { name, version, definition, uses: await loadBelow(child, {}, [...above, name]) } });
  }
  return loaded;
}

function invalid(message: string): PlatformError {
  return new PlatformError("environment.invalid", `deployConfig.uses: ${message}`);
}
