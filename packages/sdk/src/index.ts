export type { CommandEnding, CommandLine, CommandResult, FileContent, SandboxFile } from "@aenv/contract";
export {
  type Catalogue,
  type CatalogueEntry,
  type ContentBlock,
  type CreateInstanceRequest,
  type EnvironmentRecord,
  type EnvironmentStatus,
  type ErrorCode,
  type ForkFidelity,
  type Identity,
  type InstanceEvent,
  type InstanceRecord,
  type InstanceStatus,
  isPlatformError,
  type Json,
  PlatformError,
  type ResetResult,
  type Reward,
  type Role,
  type SnapshotRecord,
  type SnapshotRef,
  type StartedFrom,
  type Task,
  type TokenRecord,
  type ToolDescriptor,
  type VersionRecord,
  type Visibility,
} from "@aenv/contract";
export { type Clock, systemClock } from "./async/clock.ts";
export { type BatchItem, EnvironmentBatch } from "./environment/batch.ts";
export type { CallToolOptions, EnvironmentInfo, ForkOptions, RoleOptions, SnapshotOptions } from "./environment/call-options.ts";
export { Environment } from "./environment/environment.ts";
export { EpisodeClient } from "./environment/episode.ts";
export type { Logger } from "./environment/logger.ts";
export type { InstanceRuntime } from "./environment/open-instance.ts";
export type { EnvironmentOptions, InstanceOptions, MountPoint } from "./environment/options.ts";
export type { CallOptions } from "./environment/sandbox-client.ts";
export { toReward } from "./environment/score.ts";
export {
  AEnvError,
  type AEnvErrorOptions,
  AnswerLimitError,
  EnvironmentError,
  type EnvironmentErrorOptions,
  NetworkError,
  ToolError,
  type ToolErrorOptions,
  ToolServerError,
  ToolTimeoutError,
  UnrecoverableEnvironmentError,
  ValidationError,
} from "./errors/errors.ts";
export { TransportError } from "./errors/http-errors.ts";
export type { HttpAnswer, HttpRequest, Transport } from "./http/http.ts";
export type { ToolLog, ToolProgress } from "./mcp/client.ts";
export { ToolResult } from "./mcp/tool-result.ts";
export type { ToolSource } from "./mcp/tool-source.ts";
export type { AddressOptions } from "./platform/addresses.ts";
export type { ControlClientOptions, RequestOptions } from "./platform/control-client.ts";
export type { CreateResult } from "./platform/create-batch.ts";
export {
  type EnvironmentFilter,
  HubClient,
  type Publication,
  type PublishOptions,
  type TransferOptions,
} from "./platform/hub-client.ts";
export { SchedulerClient } from "./platform/scheduler-client.ts";
export type {
  CreateOptions,
  InstanceFilter,
  InstancePage,
  LogOptions,
  LookOptions,
  PresignOptions,
  SchedulerClientOptions,
  WaitOptions,
} from "./platform/scheduler-options.ts";
export { ServiceClient } from "./platform/service-client.ts";
export { SnapshotClient, type SnapshotPage } from "./platform/snapshot-client.ts";
export { type NewToken, TokenClient } from "./platform/token-client.ts";
export type { SandboxFileChange, SandboxFiles } from "./sandbox/files.ts";
export type { OnConnection, SandboxListener } from "./sandbox/listen.ts";
export type { SandboxProcess } from "./sandbox/process.ts";
export {
  type CommandOptions,
  type ExecOptions,
  InstanceSandbox,
  type ListedCommand,
  type SpawnOptions,
} from "./sandbox/sandbox.ts";
export type { SandboxTarget } from "./sandbox/target.ts";
export { type Fetch, fetchTransport } from "./transport/fetch.ts";
