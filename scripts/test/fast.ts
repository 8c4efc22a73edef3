// npm run test:fast: `npm run check`, and the tests that need nothing but Node, without the files of testing/src/long-files.ts.
// npm run test:fast -- NAME...: only those of the test files whose path contains a name. Options go to Vitest.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { runVitest } from "./vitest.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const args = process.argv.slice(2);
const isAll = args.every((arg) => arg.startsWith("-"));

const check = () => spawnSync(process.execPath, ["scripts/check.ts"], { cwd: root, stdio: "inherit" }).status ?? 1;
const statuses = isAll ? [check()] : [];
statuses.push(runVitest(root, ["run", ...args], { AENV_WITHOUT: "all", ...(isAll && { AENV_TEST_FAST: "1" }) }));
process.exitCode = Math.max(...statuses);
