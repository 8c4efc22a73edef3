import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Problem } from "./problem.ts";

const SCRIPT = "packages/aenv/scripts/reference/main.ts";

/** The generated pages of docs/reference are what `npm run reference` would write. */
export async function checkReference(root: string): Promise<readonly Problem[]> {
  if (!existsSync(join(root, SCRIPT))) return [{ file: SCRIPT, message: "this script is missing, so the reference cannot be checked" }];
  const { ok, output } = await new Promise<{ ok: boolean; output: string }>((resolve) => {
    execFile(process.execPath, [SCRIPT, "--check"], { cwd: root }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: stdout + stderr }),
    );
  });
  const problems = readStalePages(output);
  return ok || problems.length > 0 ? problems : [{ file: SCRIPT, message: output.trim() }];
}

/** `docs/reference/errors.md:12: should be '…'` */
export function readStalePages(output: string): Problem[] {
  return [...output.matchAll(/^(docs\/reference\/\S+\.md):(\d+): (.+)$/gm)].map(([, file = "", line, text]) => ({
    file,
    line: Number(line),
    message: `${text}; run: npm run reference`,
  }));
}
