import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Problem } from "./problem.ts";

const FOLDER = "packages/aenv/entry";
const entries = ["index", "kit", "sdk", "adapters"];

/** The entries of a clone's `aenvironment` have every name of its sources. */
export async function checkEntries(root: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const [file, text] of await entryFiles(root)) {
    if (readFileSync(join(root, file), "utf8") !== text) {
      problems.push({ file, message: "does not have the names that its source exports: write it anew with `npm run format`" });
    }
  }
  return problems;
}

export async function writeEntries(root: string): Promise<void> {
  for (const [file, text] of await entryFiles(root)) writeFileSync(join(root, file), text);
}

/**
 * An old Node cannot even load TypeScript. So an entry is JavaScript, refuses an old Node first and imports the sources after; what is
 * imported that late cannot be re-exported with a star, and its names are written down.
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
