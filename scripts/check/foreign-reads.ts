import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listFiles } from "./files.ts";
import { allowedReads, type ReadAllowance } from "./foreign-reads-allowed.ts";
import { lineAt, type Problem } from "./problem.ts";
import { isTest } from "./rooms.ts";
import { findUnboundedReads } from "./unbounded-reads.ts";

/** Code that runs for users: tests, benches and their tools read what they started themselves. */
const PRODUCT = /^(?:packages\/[\w-]+\/(?:src|entry|templates)|environments\/[\w-]+\/(?:src|data)|examples)\/.*\.[mc]?[jt]sx?$/;
const NOT_PRODUCT = /^packages\/(?:aenv\/src\/(?:platform-tests|first-use|bench)|sandbox\/src\/escape)\/|\.test-d\.ts$/;

const ALLOWED_IN = "scripts/check/foreign-reads-allowed.ts";

/**
 * Fails on a read that has no limit: a body, a stream, a message or a delay that somebody else sends. What is not foreign, or has a limit that
 * this check does not see, is listed with a reason; an entry that no longer matches anything fails too.
 */
export async function checkForeignReads(root: string, allowed: readonly ReadAllowance[] = allowedReads): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const used = new Set<string>();
  for (const file of await listFiles(root)) {
    if (!PRODUCT.test(file) || NOT_PRODUCT.test(file) || isTest(file)) continue;
    const source = await readFile(join(root, file), "utf8");
    const codes = allowed.flatMap(({ reads }) => reads[file] ?? []);
    for (const { at, message } of findUnboundedReads(source)) {
      const code = codes.find((text) => lineOf(source, at).includes(text));
      if (code === undefined) problems.push({ file, line: lineAt(source, at), message });
      else used.add(keyOf(file, code));
    }
  }
  return [...problems, ...unused(allowed, used)];
}

function unused(allowed: readonly ReadAllowance[], used: ReadonlySet<string>): Problem[] {
  return allowed
    .flatMap(({ reads }) => Object.entries(reads).flatMap(([file, codes]) => codes.map((code) => ({ file, code }))))
    .filter(({ file, code }) => !used.has(keyOf(file, code)))
    .map(({ file, code }) => ({
      file: ALLOWED_IN,
      message: `no unbounded read in ${file} is on a line with '${code}'; remove the entry`,
    }));
}

const keyOf = (file: string, code: string) => `${file}\0${code}`;

function lineOf(source: string, at: number): string {
  const end = source.indexOf("\n", at);
  return source.slice(source.lastIndexOf("\n", at - 1) + 1, end < 0 ? undefined : end);
}
