import { replayCommand } from "@aenv/benchmark/testing";
import { replayFile } from "./replay.ts";

await replayCommand("terminal-bench", replayFile);
