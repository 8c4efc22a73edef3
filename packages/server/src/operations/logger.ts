import { type Logger, pino } from "pino";

/** Fields whose values are never logged, at any depth up to three. */
const SECRETS = [
  "authorization",
  "cookie",
  "token",
  "secret",
  "password",
  "api_key",
  "apiKey",
  "environment_variables",
  "variables",
  "arguments",
  "agentKey",
  "agent_url",
  "linkSecret",
  "role_urls",
  "a2a_url",
];

/** One JSON line per event. Bodies are not logged, and possible secrets are redacted. */
export function createLogger(level: string, destination?: NodeJS.WritableStream): Logger {
  const paths = SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  const options = { level, base: { service: "aenv" }, redact: { paths, censor: "[hidden]" }, timestamp: pino.stdTimeFunctions.isoTime };
  return destination === undefined ? pino(options, pino.destination({ fd: 2, sync: false })) : pino(options, destination);
}
