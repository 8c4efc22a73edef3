import { type Json, PyError } from "@aenv/benchmark";
import { imageName } from "../../spec/image-name.ts";
import { END_MARKER, START_MARKER } from "../../spec/markers.ts";
import { columnText, instanceIdOf, type Row } from "../row.ts";
import { pythonCommands } from "./commands.ts";
import { legacyEvalType, legacyParser } from "./parsers.ts";
import { legacyEvalScript } from "./script.ts";

const DERIVED = ["image", "log_parser", "eval_type", "eval_script"] as const;

/** A row of release 5 as it is; a row of release 4 or older with the columns that it lacks. Raises if they cannot be derived. */
export function completeRow(row: Row): Row {
  if (DERIVED.every((column) => isGiven(row, column))) return row;
  const complete = new Map<string, Json>(row);
  for (const column of ["FAIL_TO_PASS", "PASS_TO_PASS"]) if (!complete.has(column)) complete.set(column, []);
  for (const column of DERIVED) if (!isGiven(row, column)) complete.set(column, derive[column](row));
  return complete;
}

/** Parquet files have null where a row has no value. */
function isGiven(row: Row, column: string): boolean {
  return (row.get(column) ?? null) !== null;
}

const derive: Readonly<Record<(typeof DERIVED)[number], (row: Row) => string>> = {
  image: (row) => imageName(instanceIdOf(row), { namespace: "swebench" }),
  eval_type: (row) => legacyEvalType(columnText(row, "repo")),
  log_parser: (row) => {
    const repo = columnText(row, "repo");
    const parser = legacyParser(repo);
    if (parser !== null) return parser;
    throw new PyError("KeyError", `the row of ${instanceIdOf(row)} has no log_parser, and none is known for ${repo}`);
  },
  eval_script: (row) => readyScript(row) ?? pythonScript(row),
};

/** Some projects deliver a script in the column `script`. */
function readyScript(row: Row): string | null {
  const script = row.get("script");
  return typeof script === "string" && script.includes(START_MARKER) && script.includes(END_MARKER) ? script : null;
}

function pythonScript(row: Row): string {
  const repo = columnText(row, "repo");
  const commands = pythonCommands(repo, columnText(row, "version"));
  if (commands === null)
    throw new PyError(
      "KeyError",
      `the row of ${instanceIdOf(row)} has no eval_script, and the commands of ${repo} are not known: use rows of release 5`,
    );
  return legacyEvalScript({ repo, baseCommit: columnText(row, "base_commit"), testPatch: columnText(row, "test_patch"), commands });
}
