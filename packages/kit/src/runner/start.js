import { enableCompileCache } from "node:module";

// node start.js --socket <path> [--compile-cache <folder>]
//
// Plain JavaScript, for what comes before the cache is switched on is compiled, and freed of its types, at every start.
const at = process.argv.indexOf("--compile-cache");
if (at >= 0) enableCompileCache(process.argv[at + 1]);
await import("./runner.ts");
