import { SYSTEM_PATH } from "../host/launcher.ts";

/** Environment variables of the process that uses this package. */
export type MachineVariables = Readonly<Record<string, string | undefined>>;

/** What skopeo needs to find its settings, proxies and certificates. */
const NAMES = /^(?:PATH|HOME|TMPDIR|DOCKER_HOST|DOCKER_CERT_PATH|DOCKER_TLS_VERIFY|SSL_CERT_FILE|SSL_CERT_DIR|(?:https?|all|no)_proxy)$/i;

/** The variables of skopeo. No others reach it: they may be secrets, or name credentials of the operator for registries. */
export function skopeoVariables(variables: MachineVariables = {}): Record<string, string | undefined> {
  return { PATH: SYSTEM_PATH, ...Object.fromEntries(Object.entries(variables).filter(([name]) => NAMES.test(name))) };
}
