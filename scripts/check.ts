import { fileURLToPath } from "node:url";
import { checkBoundaries } from "./check/boundaries.ts";
import { checkCycles } from "./check/cycles.ts";
import { checkEntries } from "./check/entries.ts";
import { checkForeignReads } from "./check/foreign-reads.ts";
import { checkLinks } from "./check/links.ts";
import { checkLint } from "./check/lint.ts";
import { type Check, formatProblem } from "./check/problem.ts";
import { checkProcessEnv } from "./check/process-env.ts";
import { checkProse } from "./check/prose.ts";
import { checkReference } from "./check/reference.ts";
import { checkSnippets } from "./check/snippets.ts";
import { checkThreats } from "./check/threats.ts";
import { checkTypes } from "./check/types.ts";
import { checkWords } from "./check/words.ts";

const checks: Readonly<Record<string, Check>> = {
  types: checkTypes,
  "lint and format": checkLint,
  boundaries: checkBoundaries,
  "import cycles": checkCycles,
  "environment variables": checkProcessEnv,
  "unbounded reads": (root) => checkForeignReads(root),
  "exported names": checkEntries,
  "docs links": checkLinks,
  "docs code": checkSnippets,
  "docs reference": checkReference,
  "docs threats": checkThreats,
  words: checkWords,
  prose: checkProse,
};

const root = fileURLToPath(new URL("..", import.meta.url));
const found = await Promise.all(Object.entries(checks).map(async ([name, check]) => [name, await check(root)] as const));
for (const [name, problems] of found) {
  console.log(problems.length === 0 ? `✓ ${name}` : `✗ ${name}: ${problems.length}`);
  for (const problem of problems) console.log(`    ${formatProblem(problem)}`);
}
if (found.some(([, problems]) => problems.length > 0)) process.exitCode = 1;
