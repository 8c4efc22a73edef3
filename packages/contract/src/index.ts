// Every file imports zod as a namespace (`import * as z`), not as `{ z }`: a bundle then contains only the quarter of it that is used.

export { ARTIFACTS_FUNCTION, type EpisodeArtifacts, episodeArtifacts } from "./artifacts.ts";
export { type AtifSource, atifSteps } from "./atif.ts";
export { type Backoff, pauseAfter } from "./backoff.ts";
export { type JsonLimits, jsonLimits, parseBoundedJson } from "./bounded-json.ts";
export {
  type ByteSource,
  boundedChunks,
  boundedLines,
  clampDelayMs,
  ReadLimitExceeded,
  type ReadLimitKind,
  type ReadLimits,
  readBoundedBytes,
  readBoundedText,
} from "./bounded-read.ts";
export { invalidBundle, readTar, type TarFile, writeTarHeader } from "./bundle-tar.ts";
export { formatBytes, parseBytes } from "./bytes.ts";
export { canonicalJson } from "./canonical-json.ts";
export { type Catalogue, type CatalogueEntry, catalogue, catalogueEntry } from "./catalogue.ts";
export { type ChatMessage, type ChatToolCall, chatMessage, chatToolCall, textOf } from "./chat.ts";
export {
  type ChildGrant,
  type ChildState,
  type ChildUse,
  childGrant,
  childName,
  childState,
  childUse,
  type EpisodeChild,
  episodeChildren,
  isReexported,
  MAX_CHILD_DEPTH,
  MAX_REEXPORTED_NAME,
  MAX_TREE_INSTANCES,
  type OpenedChild,
  openedChild,
  reexportedName,
} from "./children.ts";
export { type ConfigCheck, type ConfigProblem, checkConfig, type EnvironmentConfig, environmentConfig, parseConfig } from "./config.ts";
export { misspelledFields } from "./config-names.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export {
  beyondEgress,
  type Destination,
  destinationsOf,
  type EgressPolicy,
  egressPolicy,
  isEverywhere,
  matchesName,
  narrowEgress,
  parseDestination,
  privateNetworks,
} from "./egress.ts";
export { type ControlEnvelope, controlEnvelope, type SandboxEnvelope, sandboxEnvelope, sandboxFailure } from "./envelope.ts";
export {
  artifact,
  type EnvironmentRecord,
  type EnvironmentStatus,
  environment,
  environmentStatuses,
  historyEvent,
  type VersionRecord,
  type Visibility,
  versionRecord,
  visibilities,
} from "./environment.ts";
export {
  digestAnswer,
  type EpisodeAbilities,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  episodeAbilities,
  episodePrompt,
  episodeReply,
  episodeStatus,
  noAbilities,
  type OracleAction,
  oracleAction,
  oracleAnswer,
  replyRequest,
  STATUS_META,
} from "./episode.ts";
export {
  type ForfeitReason,
  forfeitAnswer,
  forfeitReasons,
  forfeitRequest,
  MAX_ROLES,
  type RoleDescription,
  type RoleDescriptions,
  type RoleRewards,
  roleDescription,
  roleDescriptions,
  roleName,
  roleRewards,
  stepRewardRequest,
} from "./episode-roles.ts";
export { type ErrorCode, errorTable, isErrorCode, isPlatformError, messageOf, PlatformError, type PlatformErrorOptions } from "./errors.ts";
export { checkSingleHost, type HostHeaders, type HostRule, hostName, hostRuleFor, isLoopback, isOriginOf } from "./host-rule.ts";
export { newInstanceId, newKey, parseRequestId } from "./ids.ts";
export {
  type CreateInstanceRequest,
  createInSandboxRequest,
  createInstanceRequest,
  type EpisodeTask,
  episodeTask,
  type ForkFidelity,
  forkFidelities,
  forkRequest,
  type InstanceEvent,
  type InstanceRecord,
  type InstanceStatus,
  instance,
  instanceEvent,
  instanceStatuses,
  type ResetRequest,
  type ResetResult,
  renameRequest,
  renewRequest,
  resetRequest,
  resetResult,
  type StartedFrom,
  startedFrom,
} from "./instance.ts";
export {
  containsIpv4,
  formatIpv4,
  formatIpv4Network,
  type Ipv4Network,
  overlapsIpv4,
  parseIpv4,
  parseIpv4Network,
} from "./ipv4.ts";
export { isObject, type Json, type JsonObject, type JsonSchema, jsonSchemaObject, tryJson } from "./json.ts";
export {
  type CommandEvent,
  commandEvent,
  type LinkFailure,
  type LinkParameters,
  type LinkPath,
  linkFailure,
  linkRequests,
  openedSandbox,
} from "./link-requests.ts";
export { type BundleManifest, bundleManifest } from "./manifest.ts";
export {
  type ModelCall,
  type ModelCallAnswer,
  type ModelTurn,
  modelCall,
  modelCallAnswer,
  modelName,
  type ResponseFormat,
  type ToolChoice,
} from "./model-calls.ts";
export {
  type DeclaredModels,
  type InstanceModel,
  type InstanceModels,
  type InstanceModelsInput,
  instanceModels,
  type RolloutModel,
} from "./model-endpoint.ts";
export { nearestName } from "./nearest.ts";
export { parseWithNotation } from "./number-notation.ts";
export {
  type EpisodeStage,
  episodeStages,
  type Outcome,
  outcome,
  type Scored,
  type Unscored,
  type UnscoredCause,
  unscoredCauses,
} from "./outcome.ts";
export { pageOf } from "./page.ts";
export { decodePath, encodePath } from "./path-bytes.ts";
export {
  CALLERS_LABEL,
  type FrameChannel,
  FrameReader,
  frameHead,
  LINK_INSTANCE,
  LINK_PROTOCOL,
  LISTEN_PORT,
  LISTEN_PROTOCOL,
  OWN_CONNECTIONS_KEY,
  OWN_CONNECTIONS_VARIABLE,
} from "./platform-link.ts";
export { isPublicAddress } from "./private-address.ts";
export { problemsOf } from "./problems.ts";
export { programPort } from "./program-port.ts";
export {
  type RecordedAnswer,
  type RecordedExchange,
  type RecordingMode,
  type RecordingRequest,
  recordedAnswer,
  recordedExchange,
  recordingAnswer,
  recordingModes,
} from "./recording.ts";
export { type EnvironmentRef, formatRef, nameProblem, parseName, parseRef, splitRef, versionProblem } from "./ref.ts";
export { fieldLimits, knownFields, text } from "./request-fields.ts";
export {
  assertShmFits,
  type Limit,
  limitFields,
  limitNames,
  limitPath,
  type OpenLimits,
  openLimitsOf,
  pickResources,
  type Resources,
  readLimits,
} from "./resources.ts";
export { parseRetryAfter, retryAfterOf } from "./retry-after.ts";
export { type Reward, reward } from "./reward.ts";
export {
  MAX_ROLLOUTS,
  type RolloutAgent,
  type RolloutPlayer,
  type RolloutRequest,
  type RolloutResult,
  type RolloutState,
  type RolloutStatus,
  type RolloutsRequest,
  rolloutId,
  rolloutPage,
  rolloutRequest,
  rolloutResult,
  rolloutStatus,
  rolloutsAccepted,
  rolloutsRequest,
} from "./rollout.ts";
export {
  type Api,
  commandRoutes,
  controlRoutes,
  FIRST_INSTANCE,
  fileRoutes,
  fillPath,
  headers,
  hostRoutes,
  type InstanceRouteName,
  instancePrefix,
  instanceRoutes,
  isReservedEndpoint,
  matchesPath,
  pathsBelowInstance,
  type Route,
  rolloutRoutes,
  runnerRoutes,
  type SandboxRoute,
  sandboxRoutes,
  servicePrefix,
  serviceRoutes,
  sessionRoutes,
  snapshotRoutes,
} from "./routes.ts";
export { commandEndingAnswer, commandResultAnswer, fileAnswer, fileListAnswer, listedCommandAnswer } from "./sandbox-answers.ts";
export type { CommandEnding, CommandLine, CommandResult, ExactFile, FileContent, SandboxFile } from "./sandbox-commands.ts";
export { initCommand, mountPoints, type SandboxOptions } from "./sandbox-options.ts";
export { secretNames } from "./secrets.ts";
export {
  type CreateServiceRequest,
  createServiceRequest,
  type ServiceRecord,
  service,
  type UpdateServiceRequest,
  updateServiceRequest,
} from "./service.ts";
export {
  type CreateSessionRequest,
  createSessionRequest,
  type ListedTask,
  type ListedTasks,
  listedTask,
  listedTasks,
  type ScoreSessionRequest,
  type SessionAction,
  type SessionScore,
  type SessionStart,
  type SessionStep,
  scoreSessionRequest,
  sessionAction,
  sessionScore,
  sessionStart,
  sessionStep,
  sessionTtl,
  type TaskChoice,
  taskChoice,
} from "./session.ts";
export {
  isSnapshotId,
  parseSnapshotRef,
  type SnapshotRecord,
  type SnapshotRef,
  type SnapshotRequest,
  snapshotName,
  snapshotRecord,
  snapshotRequest,
} from "./snapshot.ts";
export { SseDecoder, type SseEvent, sseEvents } from "./sse.ts";
export { latin1, latin1Bytes, TAR_BLOCK, TAR_TYPES, type TarEntry, type TarType, tarPadding } from "./tar-format.ts";
export { readTarEntries, type TarItem } from "./tar-reader.ts";
export { TAR_END, tarEntryHeader, tarPaddingBytes } from "./tar-writer.ts";
export { type Task, type TaskPage, task, taskPage } from "./task.ts";
export {
  type CapabilitySet,
  isDualContainer,
  type SandboxGrant,
  sandboxGrant,
  TASK_SANDBOX,
  taskSandboxConfig,
} from "./task-sandboxes.ts";
export { TimedSignal } from "./timed-signal.ts";
export { type Identity, identity, type NewTokenRecord, newTokenRecord, type Role, roles, type TokenRecord, tokenRecord } from "./token.ts";
export { type CallToolResult, type ContentBlock, callToolResult, contentBlock, type ToolDescriptor, toolDescriptor } from "./tool.ts";
export {
  type Conversation,
  conversation,
  type EarlierAttempts,
  earlierAttempts,
  isTruncated,
  type Provenance,
  provenance,
  type Step,
  type StopReason,
  step,
  stopReasons,
  type TokenSequence,
  TRAJECTORY_FORMAT,
  type Trajectory,
  type TrajectoryRole,
  tokenSequence,
  trajectory,
  type Usage,
  usage,
} from "./trajectory.ts";
export { type Turn, turn, type WeightSpan, weightSpan } from "./turn.ts";
export { untilAborted } from "./until-aborted.ts";
export {
  assertVariables,
  type VariableKind,
  type VariableSetter,
  type Variables,
  variableKind,
  variableProblem,
} from "./variables.ts";
