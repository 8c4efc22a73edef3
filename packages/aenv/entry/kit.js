// Written by `npm run format`.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
  Host,
  ReadLimitExceeded,
  agentEnvironment,
  assertUninterrupted,
  boundedChunks,
  dataPath,
  decodePath,
  defineEnvironment,
  encodePath,
  findEntries,
  fn,
  loadEnvironment,
  mcpEnvironment,
  nearestName,
  parseBoundedJson,
  pinTools,
  readBoundedBytes,
  readBoundedText,
  registerFunction,
  registerHealth,
  registerReward,
  registerTool,
  reward,
  runSandbox,
  sandboxTools,
  serve,
  setDataRoot,
  tool,
} = await import("../src/kit.ts");
