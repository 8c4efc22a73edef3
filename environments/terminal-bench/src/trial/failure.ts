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
  | "StepSetupError"
  | "SolutionNotFoundError"
  | "CancelledError";

/** A trial, or a part of it, that could not be carried out. It has no reward, which is not the reward 0. */
export class TrialFailure extends Error {
  override readonly name = "TrialFailure";
  readonly type: ExceptionType;

  constructor(type: ExceptionType, message: string, options?: ErrorOptions) {
    super(message, options);
    this.type = type;
  }
}
