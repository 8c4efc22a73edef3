// npm run test:fast: `npm run check`, and all tests that need nothing but Node.
// npm run test:fast -- NAME...: only those of the test files whose path contains a name. Options go to Vitest.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { runVitest } from "./vitest.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const args = process.argv.slice(2);

const check = () => spawnSync(process.execPath, ["scripts/check.ts"], { cwd: root, stdio: "inherit" }).status ?? 1;
const statuses = args.length === 0 ? [check()] : [];
statuses.push(runVitest(root, ["run", ...args], { AENV_WITHOUT: "all" }));
process.exitCode = Math.max(...statuses);
