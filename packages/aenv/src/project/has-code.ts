import { findEntries } from "@aenv/kit";
import type { Project } from "./project.ts";

/** Whether the project has TypeScript or JavaScript of its own, which `push` bundles. A command of config.json is none. */
export async function hasCode({ root, config }: Pick<Project, "root" | "config">): Promise<boolean> {
  if (config.runtime !== undefined) return false;
  if (config.main !== undefined) return true;
  return findEntries(root, config).then(
    () => true,
    () => false,
  );
}
