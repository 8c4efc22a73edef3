/**
 * The variables of skopeo: what it needs to find programs, settings, proxies and certificates. No other variable of this process, which may
 * be a secret or name the operator's own credentials for registries, reaches it.
 */
const NAMES = /^(?:PATH|HOME|TMPDIR|DOCKER_HOST|DOCKER_CERT_PATH|DOCKER_TLS_VERIFY|SSL_CERT_FILE|SSL_CERT_DIR|(?:https?|all|no)_proxy)$/i;

export function skopeoVariables(variables: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => NAMES.test(name)));
}
