/** The names of exceptions in result files. */
export type ExceptionType =
  | "RewardFileNotFoundError"
  | "RewardFileEmptyError"
  | "VerifierOutputParseError"
  | "AddTestsDirError"
  | "DownloadVerifierDirError"
  | "VerifierTimeoutError"
  | "AgentTimeoutError"
  | "AgentSetupTimeoutError"
  | "EnvironmentStartTimeoutError"
  | "NonZeroAgentExitCodeError"
  | "HealthcheckError"
  | "SandboxBuildFailedError"
  | "TestsTamperedError"
  | "TestsKilledError"
  | "StepSetupError"
  | "SolutionNotFoundError"
  | "CancelledError";

/** Failures of a verification that the agent causes: its work is worth 0, which a failure of the platform is not. */
const CAUSED_BY_AGENT: ReadonlySet<string> = new Set<ExceptionType>(["VerifierTimeoutError", "TestsTamperedError", "TestsKilledError"]);

/** A trial, or a part of it, that could not be carried out. It has no reward, which is not the reward 0. */
export class TrialFailure extends Error {
  override readonly name = "TrialFailure";
  readonly type: ExceptionType;

  constructor(type: ExceptionType, message: string, options?: ErrorOptions) {
    super(message, options);
    this.type = type;
  }
}

/** The name of a failure in result files. One that was stored has its name from there. */
export function exceptionType(failure: Error): string {
  return failure instanceof TrialFailure ? failure.type : failure.name;
}

export function isCausedByAgent(failure: Error | null): boolean {
  return failure !== null && CAUSED_BY_AGENT.has(exceptionType(failure));
}
