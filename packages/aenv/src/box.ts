import { loadEnvironment, runBox } from "@aenv/kit";

// The process that holds the environment's code while `aenv run` watches over it: node box.ts <project> --socket <path> --host <host>
await runBox(() => loadEnvironment(process.argv[2] ?? "."), process.argv.slice(3));

// The other end of stdin closes when the parent ends, however it ends; nobody is left behind.
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM")).resume();
