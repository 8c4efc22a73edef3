import { posix } from "node:path";
import type { Change } from "./compare.ts";

export interface ChangeRules {
  /** Files of the patch with the tests: the script writes them. */
  readonly testFiles: ReadonlySet<string>;
  /** Files of the known solution: it shows that a solution may have to change them. */
  readonly solutionFiles: ReadonlySet<string>;
  /** Also leave out files that decide how the tests are run. */
  readonly isStrict: boolean;
}

/** Why a change is left out of the patch; null if it is part of it. */
export function refusalOf({ path, after }: Change, { testFiles, solutionFiles, isStrict }: ChangeRules): string | null {
  if (testFiles.has(path)) return "a file of the tests, which the script replaces";
  if (path.split("/").some((part) => /^(?:\.git|git~\d+)$/i.test(part))) return "a file of git itself";
  if (after?.mode === "120000" && leadsOut(path, after.target)) return `a link out of the repository, to '${after.target}'`;
  if (isStrict && !solutionFiles.has(path) && decidesTests(path)) return "a file that decides how the tests are run";
  return null;
}

/** The files that a patch names. */
export function filesOfPatch(patch: string): Set<string> {
  const files = new Set<string>();
  for (const [, before = "", after = ""] of patch.matchAll(/^diff --git a\/(.*) b\/(.*)$/gm)) files.add(before).add(after);
  return files;
}

function leadsOut(path: string, target: string): boolean {
  return posix.isAbsolute(target) || posix.join("/-", posix.dirname(path), target).match(/^\/-(?:\/|$)/) === null;
}

/** Loaded by a test runner, an interpreter or a build without being named in the tests. */
const DECIDING = new RegExp(
  [
    String.raw`(?:conftest|sitecustomize|usercustomize|noxfile|setup|runtests)\.py`,
    String.raw`.*\.pth`,
    String.raw`\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|\.coveragerc`,
    String.raw`package\.json|\.npmrc|\.mocharc(?:\..*)?|\.nycrc(?:\..*)?|\.?ava\.config\..*|\.?babelrc(?:\..*)?`,
    String.raw`(?:jest|vitest|vite|karma|babel|web-test-runner)\.(?:config|conf|setup)\..*`,
    String.raw`\.gitattributes|\.rspec|\.bashrc|\.profile`,
  ].join("|"),
);
/** Programs and libraries of the tests, in folders that come before those that are installed. */
const SHADOWING = /^(?:pytest|_pytest|pluggy|iniconfig|unittest|doctest|site|tox|xdist|pytest_\w+)(?:\.py|\/)|(?:^|\/)node_modules\//;

function decidesTests(path: string): boolean {
  const name = posix.basename(path);
  return DECIDING.exec(name)?.[0] === name || SHADOWING.test(path);
}
