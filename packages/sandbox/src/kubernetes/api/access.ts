import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { parse } from "yaml";

/** How an API server is reached, and as whom. */
export interface ClusterAccess {
  /** Such as `https://10.0.0.1:6443`. */
  readonly server: string;
  /** Certificates in PEM that sign the server's; without them, those of the system. */
  readonly ca?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly token?: string;
  /** A file whose token is replaced from time to time. */
  readonly tokenFile?: string;
  /** The name in the server's certificate, if it differs from the URL. */
  readonly serverName?: string;
  readonly skipsVerification?: boolean;
  /** Namespace of the context, or of the pod of this process. */
  readonly namespace?: string;
}

/** Where Kubernetes puts the account of a pod. */
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The account of the pod that this process runs in. */
export function accessInCluster(server: string, folder = ACCOUNT): ClusterAccess {
  try {
    return {
      server: `https://${server}`,
      ca: readFileSync(join(folder, "ca.crt"), "utf8"),
      tokenFile: join(folder, "token"),
      namespace: readFileSync(join(folder, "namespace"), "utf8").trim(),
    };
  } catch (cause) {
    throw new PlatformError(
      "request.invalid",
      `the account of this pod cannot be read (${(cause as Error).message}): give the pod a service account with automountServiceAccountToken, or name a kubeconfig`,
      { cause },
    );
  }
}

/** Reads a kubeconfig file; `context` chooses another one than the current. */
export function readKubeconfig(path: string, context?: string): ClusterAccess {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new PlatformError("request.invalid", `the kubeconfig ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
  return parseKubeconfig(text, { path, ...(context !== undefined && { context }) });
}

export interface KubeconfigPlace {
  readonly path: string;
  readonly context?: string;
}

type Fields = Readonly<Record<string, unknown>>;

export function parseKubeconfig(text: string, place: KubeconfigPlace): ClusterAccess {
  const config = fields(parseYaml(text, place), place, "the file");
  const contextName = place.context ?? textOf(config["current-context"]);
  if (contextName === undefined) throw invalid(place, "has no current-context: choose one with 'kubectl config use-context NAME'");
  const context = named(config, "contexts", "context", contextName, place);
  const cluster = named(config, "clusters", "cluster", textOf(context.cluster) ?? "", place);
  const user = textOf(context.user) === undefined ? {} : named(config, "users", "user", textOf(context.user) ?? "", place);
  for (const field of ["exec", "auth-provider"])
    if (user[field] !== undefined)
      throw invalid(
        place,
        `gets its credentials from a program ('${field}' of user '${textOf(context.user)}'), which is not run here: use a kubeconfig with a certificate or a token, such as that of a service account`,
      );
  if (user.username !== undefined) throw invalid(place, "has a user name and password, which Kubernetes no longer accepts: use a token");
  const server = textOf(cluster.server);
  if (server === undefined || !URL.canParse(server)) throw invalid(place, `has no valid server for cluster '${textOf(context.cluster)}'`);
  const ca = dataOrFile(cluster, "certificate-authority", place);
  const certificate = dataOrFile(user, "client-certificate", place);
  const key = dataOrFile(user, "client-key", place);
  if ((certificate === undefined) !== (key === undefined))
    throw invalid(place, "has a client certificate without its key, or a key without its certificate");
  const token = textOf(user.token);
  const tokenFile = textOf(user.tokenFile);
  const namespace = textOf(context.namespace);
  const serverName = textOf(cluster["tls-server-name"]);
  return {
    server: server.replace(/\/+$/, ""),
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && key !== undefined && { certificate, key }),
    ...(token !== undefined && { token }),
    ...(token === undefined && tokenFile !== undefined && { tokenFile: resolvePath(tokenFile, place) }),
    ...(serverName !== undefined && { serverName }),
    ...(cluster["insecure-skip-tls-verify"] === true && { skipsVerification: true }),
    ...(namespace !== undefined && { namespace }),
  };
}

function parseYaml(text: string, place: KubeconfigPlace): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw invalid(place, `is not YAML: ${(cause as Error).message}`);
  }
}

function named(config: Fields, list: string, field: string, name: string, place: KubeconfigPlace): Fields {
  const all = config[list];
  const entry = (Array.isArray(all) ? all : []).find((one) => (one as Fields | null)?.name === name) as Fields | undefined;
  if (entry === undefined) throw invalid(place, `has no ${field} '${name}'`);
  return fields(entry[field], place, `${field} '${name}'`);
}

function fields(value: unknown, place: KubeconfigPlace, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(place, `is not a kubeconfig: ${what} is no object`);
  return value as Fields;
}

/** A field with its content in base64, or with the path of a file, relative to the kubeconfig. */
function dataOrFile(from: Fields, field: string, place: KubeconfigPlace): string | undefined {
  const data = textOf(from[`${field}-data`]);
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const file = textOf(from[field]);
  if (file === undefined) return undefined;
  try {
    return readFileSync(resolvePath(file, place), "utf8");
  } catch (cause) {
    throw invalid(place, `names the file ${file} (${field}), which cannot be read: ${(cause as Error).message}`);
  }
}

function resolvePath(path: string, place: KubeconfigPlace): string {
  return isAbsolute(path) ? path : join(dirname(place.path), path);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function invalid({ path }: KubeconfigPlace, what: string): PlatformError {
  return new PlatformError("request.invalid", `the kubeconfig ${path} ${what}`);
}
