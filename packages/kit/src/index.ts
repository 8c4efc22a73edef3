export {
  boundedChunks,
  type ChatMessage,
  type CommandEnding,
  type CommandLine,
  type CommandResult,
  decodePath,
  type ExactFile,
  encodePath,
  type FileContent,
  isPlatformError,
  nearestName,
  type OracleAction,
  PlatformError,
  parseBoundedJson,
  ReadLimitExceeded,
  readBoundedBytes,
  readBoundedText,
  type SandboxFile,
} from "@aenv/contract";
export { agentEnvironment } from "./agent/agent-environment.ts";
export { type ChatAgentOptions, type ChatMemory, chatAgent } from "./agent/chat-agent.ts";
export { type CustomAnswer, type CustomMemory, type CustomTurn, customAgent } from "./agent/custom-agent.ts";
export type {
  AgentContext,
  AgentEvent,
  AgentPart,
  AgentSkill,
  AgentTools,
  Artifact,
  DataPart,
  Part,
  RawPart,
  ReceivedMessage,
  TextPart,
  UrlPart,
} from "./definition/agent.ts";
export type {
  BenchModule,
  BenchRun,
  FinishedEpisode,
  Grading,
  ImageSource,
  Prediction,
  Results,
  ResultsOptions,
  ResultsSummary,
} from "./definition/bench.ts";
export type { Child, Children, ChildToolResult } from "./definition/children.ts";
export {
  type CallContext,
  defineEnvironment,
  type EnvironmentDefinition,
  type EpisodeContext,
  type FunctionDefinition,
  fn,
  type HealthCheck,
  type HealthEndpoint,
  type HealthReport,
  type Log,
  type LogLevel,
  type McpSurface,
  type ObserveContext,
  type PathCall,
  type PathStep,
  type PathWords,
  type Reply,
  type RewardContext,
  type RewardDefinition,
  type RoleDefinition,
  reward,
  type Schema,
  type SetupContext,
  type StateContext,
  type TasksContext,
  type ToolContext,
  type ToolDefinition,
  tool,
} from "./definition/definition.ts";
export type { LocalChild, LocalEnvironment } from "./definition/local-child.ts";
export { registerFunction, registerHealth, registerReward, registerTool } from "./definition/registry.ts";
export type {
  OpenSandboxOptions,
  SandboxProgram,
  TaskCommandOptions,
  TaskExecOptions,
  TaskFiles,
  TaskProcess,
  TaskSandbox,
  TaskSandboxes,
  TaskSpawnOptions,
} from "./definition/sandbox.ts";
export { Host, type InstanceSpec } from "./instances/host.ts";
export type { Snapshot } from "./instances/snapshot.ts";
export type { AskOptions } from "./judges/ask.ts";
export { childJudge, childUser, type JudgeEnvironmentOptions, judgeEnvironment } from "./judges/children.ts";
export { type Judge, type JudgedAnswer, type ModelJudgeOptions, modelJudge, type Verdict } from "./judges/judge.ts";
export { type JudgedAnswerOptions, judgedAnswer } from "./judges/judged-answer.ts";
export { type ModelUserOptions, modelUser, type UserReply, type UserSimulator } from "./judges/user.ts";
export { dataPath, findEntries, type LoadedEnvironment, loadEnvironment, setDataRoot } from "./load/load.ts";
export { loadUses } from "./load/load-uses.ts";
export type { Completion, CompletionRequest, ModelCalls, ModelHandle, TokenUsage } from "./models/model.ts";
export { modelFetch } from "./models/model-fetch.ts";
export {
  describeMcpServer,
  type McpCommandOptions,
  type McpOffer,
  type McpOptions,
  type McpUrlOptions,
  mcpEnvironment,
} from "./mount/mcp-environment.ts";
export type { McpCall, McpState } from "./mount/mounted.ts";
export type { WorkspaceFiles } from "./mount/program.ts";
export { type PinnedTools, pinTools } from "./mount/tool-list.ts";
export { describeRemoteAgent, type RemoteCard } from "./remote-agent/card.ts";
export { type RemoteAgentOptions, type RemoteMemory, remoteAgent } from "./remote-agent/remote-agent.ts";
export type { AnswerOptions, AnswerPlace } from "./rubrics/answer.ts";
export { type ChoiceAnswerOptions, choiceAnswer } from "./rubrics/choice.ts";
export { type ExactAnswerOptions, exactAnswer, type Ignorable } from "./rubrics/exact.ts";
export { type JsonAnswerOptions, jsonAnswer } from "./rubrics/json.ts";
export { type NumericAnswerOptions, numericAnswer, type Tolerance } from "./rubrics/numeric.ts";
export { type PathTakenOptions, pathTaken, type WantedCall } from "./rubrics/path-taken.ts";
export { type PatternAnswerOptions, patternAnswer } from "./rubrics/pattern.ts";
export type { Given, RubricOptions } from "./rubrics/rubric.ts";
export { assertUninterrupted } from "./sandboxes/interruption.ts";
export { type SandboxToolOptions, type SandboxToolSetting, sandboxTools } from "./sandboxes/tools.ts";
export { type Runnable, runSandbox } from "./serve/run.ts";
export { type Served, type ServeOptions, serve } from "./serve/serve.ts";
