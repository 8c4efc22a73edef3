import { replayCommand } from "@aenv/benchmark/testing";
import { replayFile } from "./replay.ts";

const dataPath = process.env.TAU2_DATA_DIR ?? "../shared/tau2/data";
const note = "\nThe data directory is TAU2_DATA_DIR, or ../shared/tau2/data.";

await replayCommand("tau2", (file) => replayFile(file, dataPath), note);
