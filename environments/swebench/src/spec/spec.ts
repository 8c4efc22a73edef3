import { isList, type Json, type JsonObject, PyError, readJson } from "@aenv/benchmark";
import { buildEvalScript } from "./eval-script.ts";

/** What is needed to run the tests of an instance and to grade them. */
export interface EvalSpec {
  readonly instanceId: string;
  readonly image: string;
  readonly repo: string;
  readonly version: unknown;
  readonly logParser: string;
  readonly evalType: string;
  /** The script that is run in the sandbox. */
  readonly evalScript: string;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** Files that the tests need and that a patch cannot hold, as in the row. */
  readonly imageAssets: Json;
}

/** Reads the columns of a row. Raises if one of them is missing. */
export function makeSpec(row: JsonObject): EvalSpec {
  return {
    instanceId: text(row, "instance_id"),
    image: text(row, "image"),
    repo: text(row, "repo"),
    version: required(row, "version"),
    failToPass: tests(row, "FAIL_TO_PASS"),
    passToPass: tests(row, "PASS_TO_PASS"),
    logParser: text(row, "log_parser"),
    evalType: text(row, "eval_type"),
    evalScript: buildEvalScript(text(row, "eval_script")),
    imageAssets: assets(row.get("image_assets")),
  };
}

function required(row: JsonObject, column: string): Json {
  const value = row.get(column);
  if (value === undefined) throw new PyError("KeyError", `the row of instance ${nameOf(row)} has no column '${column}'`);
  return value;
}

function text(row: JsonObject, column: string): string {
  const value = required(row, column);
  if (typeof value !== "string") throw new PyError("TypeError", `'${column}' of instance ${nameOf(row)} is not a string`);
  return value;
}

/** A list of names, or the text of one in JSON. */
function tests(row: JsonObject, column: string): readonly string[] {
  const value = required(row, column);
  const list = typeof value === "string" ? readJson(value) : value;
  if (!isList(list) || !list.every((name) => typeof name === "string"))
    throw new PyError("TypeError", `'${column}' of instance ${nameOf(row)} is not a list of names`);
  return list;
}

/** Read where it is used. A string is the text of it in JSON; nothing is an object without members. */
function assets(value: Json | undefined): Json {
  const isNothing = value === undefined || value === null || value === "" || value === 0 || value === false;
  if (isNothing || (isList(value) && value.length === 0)) return new Map();
  return typeof value === "string" ? readJson(value) : value;
}

function nameOf(row: JsonObject): string {
  const id = row.get("instance_id");
  return typeof id === "string" ? id : "(without instance_id)";
}
