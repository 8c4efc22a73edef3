import { loadEnvironment } from "./load/load.ts";
import { runSandbox } from "./serve/run.ts";

// node main.ts <project> [--host 127.0.0.1] [--port 8081] [--socket path] [--empty]
await runSandbox(() => loadEnvironment(process.argv[2] ?? "."), process.argv.slice(3), { checksTasks: true });
