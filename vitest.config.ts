import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{packages,environments,examples,bench,testing,scripts,interop}/**/*.test.ts"],
    exclude: [...configDefaults.exclude, "**/dist/**", "**/templates/**", "**/fixtures/**", "**/.venv/**"],
    setupFiles: ["testing/src/clean-env.ts"],
    reporters: ["default", "./testing/src/reporter.ts"],
    // Own processes, not threads: tests change the working directory, send signals and watch the heap.
    pool: "forks",
    // Servers and child processes mostly wait, so two files share even a single core well.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Generous for a busy machine; a test that needs more says so itself.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
});
