export { readJson } from "../python/json/reader.ts";
export { writeJson } from "../python/json/writer.ts";
export { hashValue } from "./database/hash.ts";
export type { Domain } from "./domain.ts";
export { setState } from "./state.ts";
export type { Task } from "./tasks.ts";
