import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Problem } from "./problem.ts";

const FOLDER = "packages/aenv/entry";
const entries = ["index", "kit", "sdk", "adapters", "rollout"];

/** The entry files of `packages/aenv` re-export every name of their sources. */
export async function checkEntries(root: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const [file, text] of await entryFiles(root)) {
    if (readFileSync(join(root, file), "utf8") !== text) {
      problems.push({ file, message: "does not have the names that its source exports: run `npm run format`" });
    }
  }
  return problems;
}

export async function writeEntries(root: string): Promise<void> {
  for (const [file, text] of await entryFiles(root)) writeFileSync(join(root, file), text);
}

/**
 * An old Node cannot load TypeScript. So an entry is JavaScript: it checks the version of Node first and then imports the sources
 * dynamically. A dynamic import cannot be re-exported with a star, so the names are listed.
 */
async function entryFiles(root: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const entry of entries) {
    const source = pathToFileURL(join(root, `packages/aenv/src/${entry}.ts`)).href;
    const names = Object.keys(await import(source)).sort();
    const text = `// Written by \`npm run format\`.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
${names.map((name) => `  ${name},\n`).join("")}} = await import("../src/${entry}.ts");
`;
    files.set(`${FOLDER}/${entry}.js`, text);
  }
  return files;
}
