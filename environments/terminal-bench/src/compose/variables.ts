/** What compose files of tasks may use in `${NAME}`. Ours win over variables of the same name. */
export interface HarborVariables {
  readonly contextFolder: string;
  readonly imageName: string;
  /** Only if the prebuilt image is used. */
  readonly prebuiltImage: string | null;
  readonly cpus: number | null;
  readonly memoryMb: number | null;
}

export function harborVariables(given: HarborVariables): Record<string, string> {
  return {
    CONTEXT_DIR: given.contextFolder,
    MAIN_IMAGE_NAME: given.imageName,
    ...(given.prebuiltImage !== null && { PREBUILT_IMAGE_NAME: given.prebuiltImage }),
    ...(given.cpus !== null && { CPUS: String(given.cpus) }),
    ...(given.memoryMb !== null && { MEMORY: `${given.memoryMb}M` }),
    TEST_DIR: "/tests",
    ENV_VERIFIER_LOGS_PATH: "/logs/verifier",
    ENV_AGENT_LOGS_PATH: "/logs/agent",
    ENV_ARTIFACTS_PATH: "/logs/artifacts",
  };
}

export function tb1Variables(task: string, trial: string, logsFolder: string, agentLogsFolder: string): Record<string, string> {
  const prefix = `tb__${task}`;
  return {
    T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: `${prefix.replaceAll(".", "-")}__client`,
    T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: trial.replaceAll(".", "-"),
    T_BENCH_TASK_DOCKER_NAME_PREFIX: prefix,
    T_BENCH_TEST_DIR: "/tests",
    T_BENCH_CONTAINER_LOGS_PATH: "/logs",
    T_BENCH_CONTAINER_AGENT_LOGS_PATH: "/agent-logs",
    T_BENCH_TASK_LOGS_PATH: logsFolder,
    T_BENCH_TASK_AGENT_LOGS_PATH: agentLogsFolder,
  };
}

/** The name of a task's image. */
export function imageName(shortName: string): string {
  return containerName(`hb__${shortName}`, /[^a-z0-9._-]/g);
}

/** The name of a trial's compose project. */
export function projectName(trial: string): string {
  return containerName(trial, /[^a-z0-9_-]/g);
}

function containerName(name: string, forbidden: RegExp): string {
  const lower = name.toLowerCase();
  return (/^[a-z0-9]/.test(lower) ? lower : `0${lower}`).replace(forbidden, "-");
}
