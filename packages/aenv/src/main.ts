import { runCli } from "./cli.ts";
import { processTerminal } from "./terminal/terminal.ts";

// The reader of our output has closed it, as in `aenv run | head -1`: stop as after SIGTERM.
let isStdoutOpen = true;
process.stdout.on("error", () => {
  if (isStdoutOpen) process.kill(process.pid, "SIGTERM");
  isStdoutOpen = false;
});

process.exitCode = await runCli(process.argv.slice(2), processTerminal());
