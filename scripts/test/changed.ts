// npm run test:changed: the tests that a change since this branch left `origin/main` can affect, committed or not.
// npm run test:changed -- BASE: since the commit BASE. Options go to Vitest.
import { fileURLToPath } from "node:url";
import { changedFiles, defaultBase } from "./changes.ts";
import { affectedTests, readUses, testsOf } from "./dependents.ts";
import { runVitest } from "./vitest.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const args = process.argv.slice(2);
const [given] = args.filter((arg) => !arg.startsWith("-"));
const base = given ?? defaultBase(root);
const changed = changedFiles(root, base);
const uses = await readUses(root);
const tests = affectedTests(uses, changed);

console.log(`${changed.length} files changed since ${base}. They reach ${tests.length} of ${testsOf(uses).length} test files.`);
if (tests.length > 0) process.exitCode = runVitest(root, ["run", ...tests, ...args.filter((arg) => arg !== given)]);
