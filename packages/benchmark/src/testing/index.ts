export { replayCommand } from "./command.ts";
export { Tally } from "./tally.ts";
export { readVectors, textAt } from "./vectors.ts";
