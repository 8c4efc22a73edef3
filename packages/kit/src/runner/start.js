import { enableCompileCache } from "node:module";

// node start.js (--socket <path> | --host <address> --port <number>) [--caller-digest <hex>] [--kernel-random] [--compile-cache <folder>] [--ends-with <pid>]
//
// Plain JavaScript, because code that runs before the cache is enabled is compiled, and its types stripped, at every start.
const at = process.argv.indexOf("--compile-cache");
if (at >= 0) enableCompileCache(process.argv[at + 1]);
await import("./runner.ts");
