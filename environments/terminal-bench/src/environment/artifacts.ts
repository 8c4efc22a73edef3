import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TrialReport } from "../trial/report.ts";
import { storedReport } from "./stored-report.ts";

/** Limit of all artifacts of one episode together. */
const MAX_BYTES = 7 * 1024 ** 2;

type FileText = { readonly text: string } | { readonly base64: string };

/** The files of a trial: logs, verifier output, artifacts with their manifest, and the report itself. Those beyond the limit are named. */
export async function artifactFiles(
  folder: string,
  report: TrialReport,
  leftOut: readonly string[],
): Promise<{ readonly files: Readonly<Record<string, FileText>> }> {
  const files: Record<string, FileText> = {};
  const tooLarge: string[] = [];
  let left = MAX_BYTES;
  for (const path of await listFiles(folder, "")) {
    const { size } = await stat(join(folder, path));
    if (size > left) {
      tooLarge.push(path);
      continue;
    }
    left -= size;
    files[path] = encoded(await readFile(join(folder, path)));
  }
  const about = { ...storedReport(report), too_large: tooLarge, changes_left_out: leftOut.slice(0, 1_000) };
  files["trial.json"] = { text: `${JSON.stringify(about, null, 2)}\n` };
  return { files };
}

async function listFiles(root: string, inner: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(root, inner), { withFileTypes: true })) {
    const path = inner === "" ? entry.name : `${inner}/${entry.name}`;
    if (entry.isDirectory()) found.push(...(await listFiles(root, path)));
    else if (entry.isFile()) found.push(path);
  }
  return found.sort();
}

function encoded(content: Buffer): FileText {
  const text = content.toString("utf8");
  return Buffer.from(text).equals(content) ? { text } : { base64: content.toString("base64") };
}
