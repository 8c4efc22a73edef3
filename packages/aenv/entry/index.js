// What a clone's `aenvironment` is for plain Node. The sources are TypeScript, which an old Node cannot even load: so it is refused
// first and they are imported after. A module's names must be written down; the test says which are missing.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
  AEnvError,
  Environment,
  EnvironmentError,
  Host,
  HubClient,
  NetworkError,
  PlatformError,
  SchedulerClient,
  ServiceClient,
  TokenClient,
  ToolError,
  ToolResult,
  ToolServerError,
  ToolTimeoutError,
  TransportError,
  UnrecoverableEnvironmentError,
  ValidationError,
  dataPath,
  defineEnvironment,
  fetchTransport,
  findEntries,
  fn,
  isPlatformError,
  loadEnvironment,
  placeOf,
  registerFunction,
  registerHealth,
  registerReward,
  registerTool,
  reward,
  runBox,
  serve,
  setDataRoot,
  systemClock,
  tool,
} = await import("../src/index.ts");
