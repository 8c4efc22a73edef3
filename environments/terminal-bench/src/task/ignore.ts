import { readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { ignoreSpec } from "../checksum/ignore-spec.ts";

const IGNORE_FILE = ".harborignore";
const SCOPE = /^(?:steps\/[^/]+\/)?(?:tests|solution)\//;

/** Whether a file or a folder of a task, as an absolute path, is left out of its tests or of its solution. */
export type IsIgnored = (path: string) => boolean;

type RulesOf = (folder: string) => ReturnType<typeof ignoreSpec> | null;

/**
 * The rules of the files `.harborignore` in a task's folders of tests and solutions. They also apply to what is below their folders, where
 * a later match decides. Of a link, its target in the task counts too. The files themselves are always left out.
 */
export function ignoreRules(task: string): IsIgnored {
  const root = realpathSync(task);
  const known = new Map<string, ReturnType<RulesOf>>();
  const rulesOf: RulesOf = (folder) => {
    const found = known.get(folder);
    if (found !== undefined) return found;
    const source = readIfFile(join(task, folder, IGNORE_FILE));
    const rules = source === null ? null : ignoreSpec(source);
    known.set(folder, rules);
    return rules;
  };
  const matches = (path: string, isFolder: boolean) => basename(path) === IGNORE_FILE || isMatched(path, isFolder, rulesOf);
  return (path) => {
    const own = relative(task, path);
    if (own === "" || own.startsWith("..")) return false;
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    if (matches(own, isFolder)) return true;
    const target = targetIn(root, path);
    return target !== null && target !== own && matches(target, isFolder);
  };
}

/** A folder on the way that is left out takes what is in it along. */
function isMatched(path: string, isFolder: boolean, rulesOf: RulesOf): boolean {
  const names = path.split("/");
  for (const [i] of names.entries()) {
    const part = names.slice(0, i + 1).join("/");
    const shown = i < names.length - 1 || isFolder ? `${part}/` : part;
    if (!SCOPE.test(shown)) continue;
    let isExcluded = false;
    for (let above = 1; above <= i; above++) {
      const folder = names.slice(0, above).join("/");
      if (SCOPE.test(`${folder}/`)) isExcluded = rulesOf(folder)?.(shown.slice(folder.length + 1)) ?? isExcluded;
    }
    if (isExcluded) return true;
  }
  return false;
}

function readIfFile(path: string): string | null {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(path, "utf8") : null;
}

function targetIn(root: string, path: string): string | null {
  try {
    const target = relative(root, realpathSync(path));
    return target === "" || target.startsWith("..") ? null : target;
  } catch {
    return null;
  }
}
