export { type AgentChoice, type AgentName, agentNames, type ChosenProgram, type NamedAgent, namedAgents } from "./agents/agents.ts";
export { type RecordedRun, replayOfRun, type ScriptedActions, scriptedActions, scriptedByTask } from "./agents/by-task.ts";
export { type CommandOptions, commandAgent } from "./agents/command.ts";
export { type InsideOptions, insideAgent } from "./agents/inside.ts";
export { type Model, modelAgent, type TokenSupport } from "./agents/model.ts";
export { type AgentModule, moduleAgent } from "./agents/module.ts";
export { type RandomAgentOptions, randomAgent } from "./agents/random.ts";
export { replayAgent } from "./agents/replay.ts";
export { noopAgent, oracleAgent, scriptedAgent } from "./agents/scripted.ts";
export { type TerminalAgentOptions, terminalAgent } from "./agents/terminal.ts";
export { toAtif } from "./data/atif.ts";
export { conversationsOf, type TrainedConversation } from "./data/conversations.ts";
export { type Dropped, type Filtered, type FilterOptions, filterTrajectories } from "./data/filter.ts";
export { type ExportCounts, type ExportFormat, type ExportFormatName, exportFormats, exportRows } from "./data/formats.ts";
export { datasetInfo } from "./data/llama-factory.ts";
export { type Columns, writeParquet } from "./data/parquet.ts";
export { type PairOptions, preferencePairs } from "./data/preference.ts";
export { ofRole } from "./data/role-views.ts";
export type { Row, Skipped } from "./data/row.ts";
export { openaiRows, sftRows } from "./data/sft.ts";
export { tokenRows } from "./data/token-rows.ts";
export type { Artifacts } from "./episode/artifacts.ts";
export { Capacity } from "./episode/capacity.ts";
export { Episode, type EpisodeOptions } from "./episode/episode.ts";
export { ForkedGroups } from "./episode/forked-groups.ts";
export { type GradedArguments, gradeEpisode } from "./episode/grade.ts";
export { InstancePool, type InstancePoolOptions } from "./episode/instance-pool.ts";
export { Match, rolesOf } from "./episode/match.ts";
export {
  agentDigestOf,
  beginEpisode,
  EpisodeDeadline,
  type EpisodeSpec,
  type Lease,
  type Played,
  type PlayOptions,
  playEpisode,
} from "./episode/play.ts";
export { playOptions } from "./episode/play-options.ts";
export { captureOf } from "./episode/usage.ts";
export { digestOf } from "./journal/digest.ts";
export { readTrajectories, TrajectoryWriter } from "./journal/trajectories.ts";
export { type CalledModel, type CallModelOptions, callModel } from "./models/call.ts";
export { type ModelApi, modelApis } from "./models/dialect.ts";
export { ModelHttp, type ModelHttpOptions } from "./models/http.ts";
export { type LocalModel, type LocalModels, localModels } from "./models/local.ts";
export { costOfTurns, type Prices, prices } from "./models/prices.ts";
export { mergeTurns } from "./models/sequences.ts";
export type {
  Agent,
  AgentMessage,
  AgentStart,
  Player,
  ProgramAgent,
  ProgramPlace,
  ProgramStart,
  TurnAgent,
  TurnOptions,
} from "./player/agent.ts";
export { AgentError, ModelError } from "./player/failure.ts";
export type { EpisodeInstance, EpisodeSandbox } from "./player/instance.ts";
export { LimitReached, type Limits } from "./player/limits.ts";
export { describePlayers, modelsOf, type Players, type RolePlayer, roleProblem } from "./player/players.ts";
export { type RecordedAddresses, RecordingServer, type UpstreamModel } from "./recorder/server.ts";
export { type Difference, differences } from "./replay/difference.ts";
export { type Divergence, divergenceText, type ReplayResult, replay } from "./replay/replay.ts";
export { canBeRescored, type RescoreResult, rescore } from "./replay/rescore.ts";
export { comparable } from "./replay/same.ts";
export { ArtifactFiles } from "./run/artifact-files.ts";
export { playAttempts } from "./run/attempts.ts";
export { Concurrency } from "./run/concurrency.ts";
export { configDigestOf } from "./run/config-digest.ts";
export { type Drift, driftOf } from "./run/drift.ts";
export { listRuns, RunFolder } from "./run/folder.ts";
export { planEpisodes, planSize } from "./run/plan.ts";
export { type Rescored, type RescoreRunOptions, readRescored, rescoreRun } from "./run/rescore.ts";
export { playRun, type RunOptions, type RunProgress, type RunResult } from "./run/run.ts";
export { type RunSettings, runNameOf, withoutSecrets } from "./run/settings.ts";
export { withEarlierAttempts } from "./stats/earlier-attempts.ts";
export { type MeanWithInterval, meanOfGroups } from "./stats/mean.ts";
export { passAtK, passHatK } from "./stats/pass.ts";
export { type EpisodeScore, type RoleSummary, type RunSummary, scoreOf, summarise, type TaskSummary } from "./stats/summary.ts";
