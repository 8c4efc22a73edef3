// Written by `npm run format`.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
  AEnvError,
  AnswerLimitError,
  Environment,
  EnvironmentBatch,
  EnvironmentError,
  EpisodeClient,
  HubClient,
  InstanceSandbox,
  NetworkError,
  PlatformError,
  SchedulerClient,
  ServiceClient,
  SnapshotClient,
  TokenClient,
  ToolError,
  ToolResult,
  ToolServerError,
  ToolTimeoutError,
  TransportError,
  UnrecoverableEnvironmentError,
  ValidationError,
  fetchTransport,
  isPlatformError,
  systemClock,
  toReward,
} = await import("../src/sdk.ts");
