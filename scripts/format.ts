import { fileURLToPath } from "node:url";
import { writeEntries } from "./check/entries.ts";
import { runTool } from "./check/tool.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
await writeEntries(root);
const { ok, output } = await runTool(root, "biome", ["check", "--write", "."]);
process.stdout.write(output);
if (!ok) process.exitCode = 1;
