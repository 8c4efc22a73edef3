// Written by `npm run format`.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
  Host,
  assertUninterrupted,
  dataPath,
  defineEnvironment,
  findEntries,
  fn,
  loadEnvironment,
  nearestName,
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
