export { readJson } from "../python/json/reader.ts";
export { writeJson } from "../python/json/writer.ts";
export type { Domain } from "./domain.ts";
export { hashValue } from "./hash.ts";
export { setState } from "./state.ts";
export type { Task } from "./tasks.ts";
