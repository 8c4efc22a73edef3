import { expect, it } from "vitest";
import { describeEnding, type EndingFacts } from "./ending.ts";

const usage = { memoryBytes: 0, processes: 0, cpuMs: 0, outOfMemoryKills: 0, processLimitHits: 0 };
const ending = { exitCode: null, signal: null, timedOut: false, outOfMemory: false, interruption: null, durationMs: 1, droppedBytes: 0 };
const plain: EndingFacts = {
  ending: { ...ending, exitCode: 3 },
  hasLostFiles: false,
  usage,
  lines: [],
  limits: { memoryMb: 64, processes: 9, cpuSeconds: 2 },
};
const killed = { ...ending, signal: "SIGKILL" };

it.each<[string, Partial<EndingFacts>]>([
  ["the program exited with exit code 3", {}],
  ["the program exited with exit code 3; it last printed: Error: no shop", { lines: ["Error: no shop"] }],
  ["the program ran out of memory (its limit is 64 MB)", { ending: killed, usage: { ...usage, outOfMemoryKills: 1 } }],
  ["the program ran out of memory (its limit is 64 MB)", { ending: null, usage: { ...usage, outOfMemoryKills: 1 } }],
  ["the program ran out of memory", { ending: { ...killed, outOfMemory: true }, limits: { memoryMb: null } }],
  // Another process of the sandbox was killed, and the program went on until it exited by itself.
  ["the program exited with exit code 3", { usage: { ...usage, outOfMemoryKills: 1 } }],
  ["the program has used up its CPU time limit (its limit is 2 seconds)", { ending: killed, usage: { ...usage, cpuMs: 1_990 } }],
  [
    "the program exited with exit code 3; it reached the limit of processes and threads (its limit is 9)",
    { usage: { ...usage, processLimitHits: 4 } },
  ],
  ["the sandbox was killed", { ending: null }],
  ["the process that serves the files of the sandbox (runsc-gofer) was killed", { ending: null, hasLostFiles: true }],
  ["the program ran out of memory (its limit is 64 MB)", { ending: null, hasLostFiles: true, usage: { ...usage, outOfMemoryKills: 1 } }],
])("the reason is: %s", (reason, facts) => {
  expect(describeEnding({ ...plain, ...facts })).toBe(reason);
});
