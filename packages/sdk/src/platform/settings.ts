/** What the process environment says; the only place where the SDK reads it. */
export interface Settings {
  readonly apiKey?: string;
  readonly systemUrl?: string;
  /** The host of an environment that runs already; its presence means local mode. */
  readonly dummyInstanceIp?: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as absent, and a browser has none at all. */
export function readSettings(variables: Variables = processVariables()): Settings {
  const { AENV_API_KEY: apiKey, AENV_SYSTEM_URL: systemUrl, DUMMY_INSTANCE_IP: dummyInstanceIp } = variables;
  return { ...(apiKey && { apiKey }), ...(systemUrl && { systemUrl }), ...(dummyInstanceIp && { dummyInstanceIp }) };
}

function processVariables(): Variables {
  const { process } = globalThis as { process?: { env?: Variables } };
  return process?.env ?? {};
}
