/** Settings from environment variables; the only place where the SDK reads them. */
export interface Settings {
  readonly apiKey?: string;
  readonly systemUrl?: string;
  /** The host of an environment that already runs; if set, local mode is used. */
  readonly dummyInstanceIp?: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as absent. A browser has no variables. */
export function readSettings(variables: Variables = processVariables()): Settings {
  const { AENV_API_KEY: apiKey, AENV_SYSTEM_URL: systemUrl, DUMMY_INSTANCE_IP: dummyInstanceIp } = variables;
  return { ...(apiKey && { apiKey }), ...(systemUrl && { systemUrl }), ...(dummyInstanceIp && { dummyInstanceIp }) };
}

function processVariables(): Variables {
  const { process } = globalThis as { process?: { env?: Variables } };
  return process?.env ?? {};
}
