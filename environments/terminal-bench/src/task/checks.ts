import type { ArtifactConfig } from "./config/artifact.ts";
import type { TaskConfig } from "./config/config.ts";
import type { EnvironmentConfig } from "./config/environment.ts";
import type { HealthcheckConfig } from "./config/healthcheck.ts";

/** What the reference would accept and this implementation refuses: each would hang, escape to the host, or score wrongly. */
export function checkConfig(config: TaskConfig): string[] {
  const steps = config.steps ?? [];
  return [
    ...timeout(config.agent.timeout_sec, "agent.timeout_sec"),
    ...timeout(config.verifier.timeout_sec, "verifier.timeout_sec"),
    ...environment(config.environment, "environment"),
    ...environment(config.verifier.environment, "verifier.environment"),
    ...config.artifacts.flatMap((artifact, i) => checkArtifact(artifact, `artifacts[${i}]`)),
    ...steps.flatMap((step, i) => [
      ...timeout(step.agent.timeout_sec, `steps[${i}].agent.timeout_sec`),
      ...timeout(step.verifier.timeout_sec, `steps[${i}].verifier.timeout_sec`),
      ...environment(step.verifier.environment, `steps[${i}].verifier.environment`),
      ...healthcheck(step.healthcheck, `steps[${i}].healthcheck`),
      ...step.artifacts.flatMap((artifact, j) => checkArtifact(artifact, `steps[${i}].artifacts[${j}]`)),
    ]),
  ];
}

/** Paths of artifacts must stay in the trial's folder. */
export function checkArtifact(given: string | ArtifactConfig, at: string): string[] {
  const { source, destination, service } = typeof given === "string" ? { source: given, destination: null, service: null } : given;
  const problems: string[] = [];
  if (source === "") problems.push(`${at}.source is empty`);
  if (source.split("/").includes("..")) problems.push(`${at}.source must not contain '..'`);
  if (service !== null && service !== "main" && !/^(?:\/|[A-Za-z]:[/\\])/.test(source))
    problems.push(`${at}.source of another service must be absolute`);
  // An empty destination means none.
  if (destination !== null && destination !== "") problems.push(...checkDestination(destination).map((why) => `${at}.destination ${why}`));
  return problems;
}

function checkDestination(destination: string): string[] {
  if (destination.includes("\\")) return ["must use /"];
  if (destination.startsWith("/")) return ["must be relative"];
  const parts = destination.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return ["must not contain '..'"];
  if (parts.length === 0) return ["must name something"];
  return parts.length === 1 && parts[0] === "manifest.json" ? ["must not be manifest.json"] : [];
}

function timeout(seconds: number | null, at: string): string[] {
  return seconds === null || seconds > 0 ? [] : [`${at} must be greater than 0, got ${seconds}`];
}

function notNegative(number: number | null, at: string): string[] {
  return number === null || number >= 0 ? [] : [`${at} must not be negative, got ${number}`];
}

function environment(config: EnvironmentConfig | null, at: string): string[] {
  if (config === null) return [];
  return [
    ...timeout(config.build_timeout_sec, `${at}.build_timeout_sec`),
    ...(["cpus", "memory_mb", "storage_mb", "gpus"] as const).flatMap((key) => notNegative(config[key], `${at}.${key}`)),
    ...healthcheck(config.healthcheck, `${at}.healthcheck`),
  ];
}

function healthcheck(config: HealthcheckConfig | null, at: string): string[] {
  if (config === null) return [];
  const waits = ["interval_sec", "start_period_sec", "start_interval_sec", "timeout_sec"] as const;
  return waits.flatMap((key) => notNegative(config[key], `${at}.${key}`));
}
