import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { longFiles } from "./testing/src/long-files.ts";
import { LongestFirst } from "./testing/src/longest-first.ts";

/** Tests that leave nothing in their process that another file could notice: their files share processes, and start faster. */
const sharing = [
  "packages/{benchmark,contract,kit,rollout,sdk,server,trainer}/**/*.test.ts",
  "packages/sandbox/src/{images,init,lifecycle,pool,registry,spec}/**/*.test.ts",
  "packages/sandbox/src/host/!(launcher|remove-tree).test.ts",
  "packages/sandbox/src/kubernetes/{api,events,pod,service}/**/*.test.ts",
  "packages/aenv/src/{bundle,options,platform,project,terminal}/**/*.test.ts",
  "environments/{swebench,tau2,terminal-bench}/src/!(platform-tests)/**/*.test.ts",
  "scripts/check/*.test.ts",
];

/** `npm run test:fast` sets the variable. */
const leftOut = process.env.AENV_TEST_FAST === "1" ? longFiles : [];

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, "**/dist/**", "**/templates/**", "**/fixtures/**", "**/.venv/**", ...leftOut],
    setupFiles: ["testing/src/clean-env.ts", "testing/src/cost.ts"],
    // Thousands of processes of Node are started: those after the first find their modules compiled and without types.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/aenv-compiled", import.meta.url)) },
    reporters: ["default", "./testing/src/reporter.ts"],
    // Own processes, not threads: tests change the working directory, send signals and watch the heap.
    pool: "forks",
    // Servers and child processes mostly wait, so one file more than processors shares them well.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    // Generous for a busy machine; a test that needs more says so itself.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Vitest's own second is too short for a process that waits for a processor.
    expect: { poll: { timeout: 10_000 } },
    teardownTimeout: 10_000,
    // Run in the order of their names, the short files last: no processor is idle at the end.
    projects: [
      {
        extends: true,
        test: {
          name: "alone",
          include: ["{packages,environments,examples,bench,testing,scripts,interop}/**/*.test.ts"],
          exclude: sharing,
        },
      },
      { extends: true, test: { name: "shared", include: sharing, isolate: false } },
    ],
  },
});
