import { isPlatformError, PlatformError } from "@aenv/contract";

const FAULT = /^(?:sandbox|server|store|network|quota|model)\.|^internal$/;

/**
 * Whether an error that environment code has thrown is a failure of the platform: a sandbox that was lost, a model that failed, a limit of the server. It is
 * neither the agent's fault nor the environment's, so it must not become the result of a tool.
 */
export function isPlatformFault(error: unknown): error is PlatformError {
  return isPlatformError(error) && FAULT.test(error.code);
}

/** A fault during the start of an episode, with a code that a process may report. */
export function asStartFault(error: PlatformError): PlatformError {
  if (error.code.startsWith("sandbox.") || error.code.startsWith("server.") || error.code === "model.failed") return error;
  if (error.code === "quota.exceeded") return new PlatformError("sandbox.no_capacity", error.message, { cause: error });
  return new PlatformError("instance.start_failed", error.message, { cause: error, retryable: error.retryable });
}

export function unavailable(why: string): PlatformError {
  return new PlatformError("sandbox.unsupported", why);
}

export const NO_PLATFORM =
  "this environment has no sandboxes here: it is not run by a platform; publish it with 'aenv push' and create an instance on a server with the engine oci or docker";
export const NOT_DECLARED =
  'this environment declares no sandboxes: list the images in deployConfig.taskSandboxes.images of config.json, or set deployConfig.podTemplate to "DualContainer", and publish a new version';
