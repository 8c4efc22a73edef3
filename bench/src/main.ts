import { runBench } from "./bench.ts";
import { suites } from "./suites.ts";

// Exit handlers end the child processes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

process.exitCode = await runBench(suites, process.argv.slice(2), new URL("../results/", import.meta.url));
