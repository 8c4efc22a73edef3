import { type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join, relative } from "node:path";
import { hasRuns, isRun } from "../project/run-folders.ts";

/** Folders of generated files. */
const IGNORED = new Set(["node_modules", "dist", "coverage", "__pycache__", "venv"]);
/** Where rollouts in the project's folder write their runs, if `--runs` names no other folder of it. */
const RUNS = "runs";
const SETTLE_MS = 60;

export interface Watch {
  close(): void;
}

/**
 * Calls back with the changed paths, once they have settled. Each folder is watched by itself: a recursive watch would
 * walk all of node_modules, and an editor that saves by renaming is only seen from the folder.
 */
export function watchProject(root: string, onChange: (files: readonly string[]) => void): Watch {
  const watchers = new Map<string, FSWatcher>();
  const changed = new Set<string>();
  let settling: NodeJS.Timeout | undefined;

  const report = (path: string) => {
    changed.add(relative(root, path));
    clearTimeout(settling);
    settling = setTimeout(() => {
      const files = [...changed].filter((file) => !isOfRuns(root, file)).sort();
      changed.clear();
      if (files.length > 0) onChange(files);
    }, SETTLE_MS);
  };

  const isIgnored = (folder: string, name: string) => isGenerated(name) || (folder === root && name === RUNS);

  /** The files of a new folder count as changed. */
  const add = (folder: string, isNew: boolean) => {
    if (watchers.has(folder)) return;
    try {
      const watcher = watch(folder, (_, name) => {
        if (name === null || isIgnored(folder, name)) return;
        report(join(folder, name));
        add(join(folder, name), true);
      });
      watcher.on("error", () => remove(folder));
      watchers.set(folder, watcher);
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (isIgnored(folder, entry.name)) continue;
        if (isNew) report(join(folder, entry.name));
        if (entry.isDirectory()) add(join(folder, entry.name), isNew);
      }
    } catch {
      // It is a file, or was deleted: the parent folder has reported it.
      remove(folder);
    }
  };
  const remove = (folder: string) => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };

  add(root, false);
  return {
    close() {
      clearTimeout(settling);
      for (const folder of [...watchers.keys()]) remove(folder);
    },
  };
}

/** Whether a rollout has written it, wherever its runs are kept. */
function isOfRuns(root: string, path: string): boolean {
  for (let folder = path; folder !== "."; folder = dirname(folder)) if (isRun(join(root, folder))) return true;
  return hasRuns(join(root, path));
}

/** Whether it is an installed, built or hidden file, a backup of an editor or a log. */
function isGenerated(name: string): boolean {
  return IGNORED.has(name) || name.startsWith(".") || /~$|\.(?:swp|swx|tmp|log)$/.test(name) || name === "4913";
}
