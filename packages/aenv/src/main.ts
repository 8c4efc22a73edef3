import { runCli } from "./cli.ts";
import { processTerminal } from "./terminal/terminal.ts";

// Whoever read our output is gone, as in `aenv run | head -1`: stop as if we had been told to.
let isHeard = true;
process.stdout.on("error", () => {
  if (isHeard) process.kill(process.pid, "SIGTERM");
  isHeard = false;
});

process.exitCode = await runCli(process.argv.slice(2), processTerminal());
