import { runBox } from "./box/run.ts";
import { loadEnvironment } from "./load.ts";

// node main.ts <project> [--host 127.0.0.1] [--port 8081] [--socket path] [--empty]
await runBox(() => loadEnvironment(process.argv[2] ?? "."), process.argv.slice(3), { checksTasks: true });
