import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listFiles } from "./files.ts";
import { lineAt, type Problem } from "./problem.ts";
import { isTest } from "./rooms.ts";

/** Packages whose settings are all parameters. */
const FOLDERS = ["packages/contract/src/", "packages/sandbox/src/", "packages/server/src/", "packages/trainer/src/"];

/** These packages read no environment variables: their callers pass every setting. */
export async function checkProcessEnv(root: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const file of await listFiles(root)) {
    if (!file.endsWith(".ts") || isTest(file) || !FOLDERS.some((folder) => file.startsWith(folder))) continue;
    const text = await readFile(join(root, file), "utf8");
    for (const { index } of text.matchAll(/\bprocess\.env\b|from "(?:node:)?process"/g)) {
      problems.push({
        file,
        line: lineAt(text, index),
        message: "this package reads no environment variables; pass the value as a parameter",
      });
    }
  }
  return problems;
}
