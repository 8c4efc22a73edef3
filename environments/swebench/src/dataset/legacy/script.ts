import { Pattern } from "../../python/pattern.ts";
import { END_MARKER, START_MARKER } from "../../spec/markers.ts";
import type { PythonCommands } from "./commands.ts";

const CHANGED_FILE = new Pattern("diff --git a/.* b/(.*)");
/** Changed files that are not tests. `csv` has no dot in the reference. */
const NOT_TESTS = [".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"] as const;
const PATCH_END = "EOF_114329324912";
const ACTIVATE = ["source /opt/miniconda3/bin/activate", "conda activate testbed"] as const;

export interface LegacyScriptInput {
  readonly repo: string;
  readonly baseCommit: string;
  readonly testPatch: string;
  readonly commands: PythonCommands;
}

/** The script of a Python instance: applies the patch with the tests, runs them, and takes the patch back. */
export function legacyEvalScript({ repo, baseCommit, testPatch, commands }: LegacyScriptInput): string {
  const files = [...CHANGED_FILE.findAll(testPatch)].map(([, file = ""]) => file);
  const reset = `git checkout ${baseCommit} ${files.join(" ")}`;
  const lines = [
    "#!/bin/bash",
    "set -uxo pipefail",
    ...ACTIVATE,
    "cd /testbed",
    ...commands.extra,
    "git config --global --add safe.directory /testbed",
    "cd /testbed",
    "git status",
    "git show",
    `git -c core.fileMode=false diff ${baseCommit}`,
    ...ACTIVATE,
    commands.install,
    reset,
    `git apply -v - <<'${PATCH_END}'\n${testPatch}\n${PATCH_END}`,
    `: '${START_MARKER}'`,
    `${commands.test} ${directives(repo, files).join(" ")}`,
    `: '${END_MARKER}'`,
    reset,
  ];
  return `${lines.join("\n")}\n`;
}

/** The tests as arguments of the test command. Django names modules instead of files. */
function directives(repo: string, files: readonly string[]): string[] {
  const tests = files.filter((file) => !NOT_TESTS.some((ending) => file.endsWith(ending)));
  if (repo !== "django/django") return tests;
  return tests.map((file) =>
    file
      .replace(/\.py$/, "")
      .replace(/^tests\//, "")
      .replaceAll("/", "."),
  );
}
